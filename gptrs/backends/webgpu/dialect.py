"""The WGSL dialect: a kernel of the C family as a module with one entry point.

Each array is a storage buffer, of one word an element, and of two where it has 64 bits; then come
the status of failures, and the numbers of the call, which are uniform. A work item is an element of
the parallel extent, or a lane of a group that shares memory.
"""

from __future__ import annotations

import hashlib
from functools import cache

from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.webgpu.terms import WORDS
from gptrs.backends.webgpu.translation import translated
from gptrs.backends.webgpu.vocabulary import needed

GROUP = 64
"""Work items of a group, of kernels whose work items are independent."""
ENTRY = "run"


@cache
def kernel_name(kernel: Kernel) -> str:
    """A name that tells kernels apart."""
    text = repr((kernel.arrays, kernel.numbers, kernel.symbols, kernel.head, kernel.body))
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return f"{kernel.title}_{digest}"


def numbers_of(kernel: Kernel) -> tuple[str, ...]:
    """The numbers of a call, by name: the extent, those of the kernel, sizes, the status."""
    symbols = (f"n_{symbol}" for symbol in kernel.symbols)
    return ("extent", *kernel.numbers, *symbols, *(["status_at"] if kernel.fails else []))


def module(kernel: Kernel) -> str:
    """The text of a module with a kernel and what it calls."""
    numbers = numbers_of(kernel)
    names = {array.name: array.kind for array in kernel.arrays}
    names |= dict.fromkeys(numbers, "isize") | {kernel.index: "isize"}
    names |= {name: kind for kind, name, _ in kernel.shared} | {"lane": "int"}
    body = translated([*kernel.head, *kernel.body], names)
    lines = [
        *_bindings(kernel, len(numbers)),
        *(f"var<workgroup> {name}: array<{WORDS[kind]}, {n}>;" for kind, name, n in kernel.shared),
        f"@compute @workgroup_size({kernel.group or GROUP})",
        f"fn {ENTRY}(",
        "  @builtin(workgroup_id) group_at: vec3<u32>,",
        "  @builtin(num_workgroups) groups: vec3<u32>,",
        "  @builtin(local_invocation_index) lane_at: u32,",
        ") {",
        *(f"  let {name} = numbers[{n // 4}][{n % 4}];" for n, name in enumerate(numbers)),
        "  let lane = i32(lane_at);",
        f"  let {kernel.index} = {_index(kernel)};",
        f"  if ({kernel.index} >= extent) {{ return; }}",
        *(f"  {line}" for line in body),
        "}",
    ]
    text = "\n".join(lines)
    return f"{needed(text)}\n{text}\n"


def _index(kernel: Kernel) -> str:
    group = "i32(group_at.y * groups.x + group_at.x)"
    return group if kernel.group else f"{group} * {GROUP}i + lane"


def _bindings(kernel: Kernel, numbers: int) -> list[str]:
    lines: list[str] = []
    for n, array in enumerate(kernel.arrays):
        access = "read_write" if array.written else "read"
        kind = WORDS[array.kind]
        lines.append(f"@group(0) @binding({n}) var<storage, {access}> {array.name}: array<{kind}>;")
    at = len(kernel.arrays)
    if kernel.fails:
        lines.append(
            f"@group(0) @binding({at}) var<storage, read_write> status: array<atomic<u32>>;"
        )
        at += 1
    count = -(-numbers // 4)
    lines.append(f"@group(0) @binding({at}) var<uniform> numbers: array<vec4<i32>, {count}>;")
    return lines
