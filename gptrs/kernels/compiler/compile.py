"""Compilation of kernels: the interface for backends, tests and benchmarks.

A kernel is `void(intp arguments, intp first, intp last)`: the address of a block of 64-bit words
(pointers and sizes), and a half-open range of its parallel extent. It is written as LLVM IR
(`compile_ir`, `compile_built` for a generator of this package) or as Python source that Numba
compiles (`compile_source`, `compile_loop`; `gptrs.kernels.compiler.numba_lowering` lists what it
may contain). A kernel is compiled once, kept on disk and loaded without a compiler. Only a miss of
the cache needs Numba, and only for Python source.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gptrs.kernels.compiler.cache_key import Code, Listing, has_sources
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.compiler.loaded_object import Library, library
from gptrs.kernels.compiler.parallel_loop import LoopSource
from gptrs.kernels.compiler.symbols import ALLOWED
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True)
class Kernel:
    """One native function ``void(intp arguments, intp first, intp last)``."""

    name: str
    library: Library
    code: Code

    @property
    def address(self) -> int:
        """The address of its machine code. Raises `KernelError`."""
        return self.library.addresses[self.name]

    @property
    def source(self) -> str:
        """The text that it was compiled from, with its own names for variables (`library` may have
        been compiled for another one)."""
        return self.code.source

    @property
    def loop(self) -> LoopSource | None:
        """Its source as a loop that Numba can run, if it is one."""
        is_loop = self.code.language == "python" and self.code.build_text is not None
        return LoopSource(self.name, self.code.source) if is_loop else None

    def llvm(self) -> str:
        """Its LLVM IR, optimised for this CPU.

        Object code has no such text, least of all when it was loaded from disk: the first call
        of this or of `assembly` compiles the kernel once more, which adds nothing to the cache.
        """
        return self._listing.llvm

    def assembly(self) -> str:
        """Its assembly, as a listing: see `llvm`."""
        return self._listing.assembly

    @cached_property
    def _listing(self) -> Listing:
        return self.code.listing(self.library.target)

    def __call__(self, arguments: int, first: int, last: int) -> None:
        """Run it in this thread: for tests, as a call costs a microsecond."""
        _FUNCTION(self.address)(arguments, first, last)


def _kernel(name: str, code: Code) -> Kernel:
    return Kernel(name, library(code), code)


def compile_ir(text: object, name: str) -> Kernel:
    """The kernel ``@name`` of an LLVM module, given as text or as an llvmlite ``ir.Module``.

    Raises `KernelError` when LLVM rejects it or it calls more than mathematical functions.
    """
    return _kernel(name, Code("llvm", str(text), (name,)))


def compile_built(
    builder: Callable[..., KernelText], level: Isa, *arguments: Any, **options: Any
) -> Kernel:
    """The kernel that ``builder(level, *arguments, **options)`` writes, a function of this package.

    Writing the text of a large kernel takes longer than loading its code: its cache key is
    the builder, its arguments, and the sources of this package. Raises `KernelError`.
    """
    given = [*arguments, *(name for name, value in options.items() if value is True)]
    given += [value for value in options.values() if not isinstance(value, bool)]
    parts = [str(getattr(value, "label", value)) for value in given]
    name = re.sub(r"\W", "_", "_".join([builder.__name__.removesuffix("_kernel"), *parts]))
    if not has_sources():
        return compile_ir(*builder(level, *arguments, **options))
    which = f"{builder.__module__}.{builder.__qualname__} {level} {arguments} {options}"
    code = Code("builder", which, (name,), build_text=lambda: builder(level, *arguments, **options))
    return _kernel(name, code)


def compile_source(source: str, name: str) -> Kernel:
    """The kernel that the Python function ``name`` in ``source`` describes.

    Raises `KernelError` when Numba rejects it or it calls more than mathematical functions.
    """
    return _kernel(name, Code("python", source, (name,)))


def compile_loop(source: Callable[[], str], name: str, canonical: str) -> Kernel:
    """`compile_source` of a function of a loop's words and range.

    Loops with an equal ``canonical`` text, which differ in the names of variables alone, share one
    machine code; the source is asked for when it is compiled or looked at. Raises `KernelError`.
    """

    def build_text() -> KernelText:
        return KernelText(source(), name)

    return _kernel(name, Code("python", canonical, (name,), build_text=build_text))


def compile_functions(
    build: Callable[[], str], names: Iterable[str], calls: Iterable[str] = ()
) -> Mapping[str, int]:
    """The addresses of functions of any signature in the LLVM module that ``build`` writes, a
    function of this package.

    ``calls`` are functions of this process that they may call besides the mathematical ones.
    Raises `KernelError`.
    """
    wanted, allowed = tuple(names), ALLOWED | frozenset(calls)
    if not has_sources():
        return library(Code("llvm", build(), wanted, allowed, kernel=False)).addresses
    which = f"{build.__module__}.{build.__qualname__}"
    code = Code("builder", which, wanted, allowed, False, lambda: KernelText(build(), which))
    return library(code).addresses
