"""A kernel as a function of a C for devices: what OpenCL C and CUDA C say in other words.

A work item is an element of the parallel extent, and items beyond it return at once; of kernels
that share memory, a lane of a group. Failures are set in an array with an entry for each kernel
call that may fail.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from gptrs.backends.c_family.kernel import Kernel
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Words:
    """The words of a language."""

    function: str
    """What a kernel's function begins with."""
    memory: str
    """What a pointer to memory of the device begins with."""
    restrict: str
    shared: str
    """What an array that a group shares begins with."""
    item: str
    """The number of a work item."""
    group: str
    """The number of its group."""
    lane: str
    """Its number in the group."""


@cache
def vocabulary() -> str:
    """The text that comes before kernels."""
    return (files("gptrs.backends.c_family") / "vocabulary.h").read_text()


def kernel_name(kernel: Kernel, words: Words) -> str:
    """A name that tells kernels apart."""
    digest = hashlib.blake2b(_text(kernel, "k", words).encode(), digest_size=8).hexdigest()
    return f"{kernel.title}_{digest}"


def kernel_text(kernel: Kernel, words: Words) -> str:
    """A kernel as a function; ``vocabulary`` comes before it."""
    return _text(kernel, kernel_name(kernel, words), words)


def _text(kernel: Kernel, name: str, words: Words) -> str:
    pointer = f"*{words.restrict}"
    given = [
        f"{words.memory}{'' if array.written else 'const '}{array.kind} {pointer} {array.name}"
        for array in kernel.arrays
    ]
    given += [f"const isize {word}" for word in kernel.numbers]
    given += [f"const isize n_{symbol}" for symbol in kernel.symbols]
    lines = list(kernel.head)
    if kernel.fails:
        given += [f"{words.memory}int {pointer} status", "const isize status_at"]
        lines.insert(0, f"{words.memory}int *failed = status + status_at;")
    if kernel.group:
        lines += [f"{words.shared} {kind} {name}[{size}];" for kind, name, size in kernel.shared]
        lines.append(f"const isize {kernel.index} = {words.group};")
        lines.append(f"const int lane = {words.lane};")
    else:
        lines.append(f"const isize {kernel.index} = {words.item};")
        lines.append(f"if ({kernel.index} >= {kernel.extent}) return;")
    body = "\n".join(f"  {line}" for line in [*lines, *kernel.body])
    return f"{words.function} {name}({', '.join(given)}) {{\n{body}\n}}\n"
