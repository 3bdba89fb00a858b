"""The OpenCL dialect: a kernel of the C family as a ``__kernel`` function.

A work item is an element of the parallel extent, and items beyond it return at once; of kernels
that share memory, a lane of a group. Failures are counted in an array with an entry for each kernel
call that may fail.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from gptrs.backends.c_family.kernel import Kernel


@cache
def vocabulary() -> str:
    """The text that comes before kernels."""
    return (files("gptrs.backends.c_family") / "vocabulary.h").read_text()


def kernel_name(kernel: Kernel) -> str:
    """A name that tells kernels apart."""
    digest = hashlib.blake2b(_text(kernel, "k").encode(), digest_size=8).hexdigest()
    return f"{kernel.title}_{digest}"


def kernel_text(kernel: Kernel) -> str:
    """A kernel as a function; ``vocabulary`` comes before it."""
    return _text(kernel, kernel_name(kernel))


def _text(kernel: Kernel, name: str) -> str:
    given = [
        f"__global {'' if array.written else 'const '}{array.kind} *restrict {array.name}"
        for array in kernel.arrays
    ]
    given += [f"const isize {word}" for word in kernel.numbers]
    given += [f"const isize n_{symbol}" for symbol in kernel.symbols]
    lines = list(kernel.head)
    if kernel.fails:
        given += ["__global int *restrict status", "const isize status_at"]
        lines.insert(0, "__global int *failed = status + status_at;")
    if kernel.group:
        lines += [f"__local {kind} {name}[{size}];" for kind, name, size in kernel.shared]
        lines += [
            f"const isize {kernel.index} = get_group_id(0);",
            "const int lane = get_local_id(0);",
        ]
    else:
        lines += [f"const isize {kernel.index} = get_global_id(0);"]
        lines += [f"if ({kernel.index} >= {kernel.extent}) return;"]
    lines += kernel.body
    body = "\n".join(f"  {line}" for line in lines)
    return f"__kernel void {name}({', '.join(given)}) {{\n{body}\n}}\n"
