"""The WGSL dialect: a kernel of the C family as a module with one entry point.

Each array is a storage buffer, of one word an element, and of two where it has 64 bits; one that is
larger than a binding may be is bound in parts. Then come the status of failures, and the numbers of
the call, which are uniform. A work item is an element of
the parallel extent, or a lane of a group that shares memory.
"""

from __future__ import annotations

import hashlib
from functools import cache

from gptrs.backends.c_family.kernel import Kernel, KernelArray
from gptrs.backends.webgpu.terms import WORDS
from gptrs.backends.webgpu.translation import translated
from gptrs.backends.webgpu.vocabulary import needed
from gptrs.lazy_dataclass import dataclass

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


@dataclass(frozen=True)
class Variant:
    """A kernel for buffers of certain sizes."""

    kernel: Kernel
    parts: tuple[int, ...] = ()
    """By array: the bindings that it takes; empty if each takes one."""
    part_bytes: int = 0
    """The size of a part."""

    @property
    def counts(self) -> tuple[int, ...]:
        """By array: the bindings that it takes."""
        return self.parts or (1,) * len(self.kernel.arrays)


def module(variant: Variant) -> str:
    """The text of a module with a kernel and what it calls."""
    kernel = variant.kernel
    numbers = numbers_of(kernel)
    names = {array.name: array.kind for array in kernel.arrays}
    names |= dict.fromkeys(numbers, "isize") | {kernel.index: "isize"}
    names |= {name: kind for kind, name, _ in kernel.shared} | {"lane": "int"}
    pairs = zip(kernel.arrays, variant.counts, strict=True)
    divided = frozenset(array.name for array, count in pairs if count > 1)
    body = translated([*kernel.head, *kernel.body], names, divided)
    lines = [
        *_bindings(variant, len(numbers)),
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


def _bindings(variant: Variant, numbers: int) -> list[str]:
    kernel, lines, at = variant.kernel, list[str](), 0

    def bind(space: str, name: str, kind: str) -> None:
        nonlocal at
        lines.append(f"@group(0) @binding({at}) var<{space}> {name}: {kind};")
        at += 1

    for array, count in zip(kernel.arrays, variant.counts, strict=True):
        space = "storage, read_write" if array.written else "storage, read"
        kind = WORDS[array.kind]
        parts = [f"{array.name}_{n}" for n in range(count)] if count > 1 else [array.name]
        for name in parts:
            bind(space, name, f"array<{kind}>")
        if count > 1:
            size = variant.part_bytes // (8 if kind.startswith("vec2") else 4)
            lines += _functions(array, kind, parts, size)
    if kernel.fails:
        bind("storage, read_write", "status", "array<atomic<u32>>")
    bind("uniform", "numbers", f"array<vec4<i32>, {-(-numbers // 4)}>")
    return lines


def _functions(array: KernelArray, kind: str, parts: list[str], size: int) -> list[str]:
    """Functions that read and write the elements of an array in parts of ``size`` elements."""
    read, written = list[str](), list[str]()
    for n, part in enumerate(parts):
        inside = "" if n == len(parts) - 1 else f"if (i < {(n + 1) * size}) "
        at = f"{part}[i - {n * size}]"
        read.append(f"  {inside}{{ return {at}; }}")
        written.append(f"  {inside}{{ {at} = x; return; }}")
    lines = [f"fn {array.name}_at(i: i32) -> {kind} {{", *read, "}"]
    if array.written:
        lines += [f"fn {array.name}_put(i: i32, x: {kind}) {{", *written, "}"]
    return lines
