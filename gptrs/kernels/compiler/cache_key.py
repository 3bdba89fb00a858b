"""The input of a compilation (`Code`) and its cache key, a hash of everything it depends on.

The key covers the text (LLVM IR, Python source, or the builder's name and arguments), exported
names, allowed calls, target triple, CPU and features, the versions of llvmlite, LLVM and (for
Python source) Numba and Python, the optimisation level, and the sources of the modules that
compile; for builders, all sources of `gptrs.kernels` but ``__init__`` files. So there is no version
number to maintain: any edit of these files compiles kernels anew. Used by
`gptrs.kernels.compiler.loaded_object`; does not import Numba.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from gptrs import __version__
from gptrs.kernels.compiler import codegen
from gptrs.kernels.compiler.codegen import KernelError
from gptrs.kernels.compiler.compile_job import CompileJob
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.compiler.isa import Target
from gptrs.kernels.compiler.shield import shielded
from gptrs.kernels.compiler.symbols import ALLOWED
from gptrs.lazy_dataclass import dataclass

Language = Literal["llvm", "python", "builder"]

_KERNELS = Path(__file__).parents[1]
_COMPILER = (
    *("compiler/cache_key.py", "compiler/compile_job.py", "compiler/codegen.py"),
    *("compiler/numba_lowering.py", "compiler/named_lowering.py", "compiler/intrinsics.py"),
    *("compiler/number_functions.py", "compiler/ir_builder.py", "compiler/interleaving.py"),
    *("compiler/numbers.py", "exponentials.py", "inverse_trigonometry.py", "logarithms.py"),
    *("vector_math.py", "vector_math64.py", "trigonometry.py", "scalar_functions.py"),
    *("vector_power.py", "roots.py"),
    *("compiler/line_intrinsics.py", "ordering/extreme_position.py", "ordering/partition.py"),
    *("ordering/running.py", "ordering/sorting_network.py", "gemm/inline_product.py"),
    "rowwise/reduce.py",
)
_Hash: TypeAlias = Any  # hashlib has no public name for it
_DIGITS = 40
"""Of a key: 160 bits of SHA-256, which CPUs have instructions for."""
_SIGNATURE = "void (i64, i64, i64)"


class Listing(NamedTuple):
    """Compiled code as text."""

    llvm: str
    """The LLVM IR, optimised for the target."""
    assembly: str


@dataclass(frozen=True)
class Code:
    """The input of a compilation: text, exported function names, external functions they call."""

    language: Language
    text: str
    """What the key depends on: LLVM IR, Python source (perhaps with other names for variables than
    that which ``build_text`` writes), or which builder writes the IR and for what."""
    names: tuple[str, ...]
    calls: frozenset[str] = ALLOWED
    kernel: bool = True
    """Whether the functions are kernels; others may have any signature."""
    build_text: Callable[[], KernelText] | None = None
    """Writes what is compiled, where that is not ``text``, and names its function."""

    @property
    def source(self) -> str:
        """The text that is compiled."""
        return self.text if self.build_text is None else self.build_text().text

    def job(self, target: Target) -> CompileJob:
        """The compile job; its text is written now if a builder writes it."""
        text, exports = self.text, {name: symbol(name) for name in self.names}
        if self.build_text is not None:
            text, entry = self.build_text()
            if self.kernel:
                exports = {entry: symbol(self.names[0])}
        language = "python" if self.language == "python" else "llvm"
        signature = _SIGNATURE if self.kernel else ""
        return CompileJob(language, text, exports, signature, self.calls, target)

    def build(self, target: Target) -> bytes:
        """The object code for ``target``. Raises `KernelError`."""
        try:
            return shielded(self.job(target).object_code)
        except KernelError as error:
            error.context.append(f"kernel {', '.join(self.names)} for {target.isa.name}")
            raise

    def listing(self, target: Target) -> Listing:
        """The LLVM IR and the assembly for ``target``, compiled anew: object code has neither."""
        job = self.job(target)

        def compiled() -> Listing:
            module = job.module()
            text = str(module)  # before the code generator, which changes the module
            return Listing(text, codegen.emit_assembly(module, target))

        return shielded(compiled)

    def assembly(self, target: Target) -> str:
        """The assembly of `listing`."""
        return self.listing(target).assembly


def symbol(name: str) -> str:
    """The symbol of a kernel in its object code, which no external function has."""
    return f"gptrs_{name}"


def cache_key(code: Code, target: Target) -> str:
    """A digest of all that the object code of ``code`` depends on; does not import Numba."""
    if code.language == "builder":
        digest = _digest_of_builders(target, code.calls).copy()
    else:
        digest = _digest_of(target, code.calls).copy()
    if code.language == "python":
        _add(digest, numba_version(), *map(str, sys.version_info[:2]))
    _add(digest, code.language, str(code.kernel), *code.names, code.text)
    return digest.hexdigest()[:_DIGITS]


def made_by() -> str:
    """The versions that entries of the cache on disk are labelled with. No part of their keys,
    which depend on the sources themselves."""
    return f"gptrs {__version__}, {codegen.version()}"


def compiler_version() -> str:
    """A digest of all that compiles kernels: the sources of this package, LLVM, Numba."""
    digest = hashlib.sha256()
    _add(digest, codegen.version(), numba_version(), *map(_source, _sources()))
    return digest.hexdigest()[:_DIGITS]


@cache
def _sources() -> tuple[str, ...]:
    """The paths of the sources of this package, which decide the text that builders write."""
    return tuple(
        os.path.join(folder, name)  # `Path` takes three times as long, in every process
        for folder, _, names in sorted(os.walk(_KERNELS))
        for name in sorted(names)
        if name.endswith(".py") and name != "__init__.py"
    )


def has_sources() -> bool:
    """Whether the sources of this package are there: only then do keys identify builders."""
    return all(map(_source, _sources()))


@cache
def _digest_of(target: Target, calls: frozenset[str]) -> _Hash:
    """The part of the key that nearly all kernels for ``target`` share."""
    digest = hashlib.sha256()
    _add(digest, target.triple, target.cpu, target.features, codegen.version())
    _add(digest, str(codegen.OPTIMISATION), *sorted(calls))
    # How kernels are compiled is code too: no version number to forget.
    for file in _COMPILER:
        _add(digest, _source(os.path.join(_KERNELS, file)))
    return digest


@cache
def _digest_of_builders(target: Target, calls: frozenset[str]) -> _Hash:
    """The same for kernels that builders write: a megabyte of sources, digested once."""
    digest = _digest_of(target, calls).copy()
    _add(digest, *map(_source, _sources()))
    return digest


def _add(digest: _Hash, *texts: str | bytes) -> None:
    for text in texts:
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))  # so that no two lists read the same
        digest.update(data)


def numba_version() -> str:
    """The version of Numba that is loaded, or that an import would load."""
    version: object = getattr(sys.modules.get("numba"), "__version__", None)
    if isinstance(version, str):
        return version
    return _version_on(tuple(sys.path))


@cache
def _version_on(_path: tuple[str, ...]) -> str:
    spec = find_spec("numba")
    if spec is None or spec.origin is None:
        return "none"
    # Not from the metadata of installed packages: another copy may come first on the path.
    text = _source(str(Path(spec.origin).with_name("_version.py")))
    if found := re.search(rb'"version": *"([^"]+)"', text):
        return found[1].decode()
    from importlib.metadata import PackageNotFoundError, version  # 50 ms, seldom needed

    try:
        return version("numba")
    except PackageNotFoundError:
        return "unknown"


@cache
def _source(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))  # half of what `open` takes
    except OSError:
        return b""  # installed without sources
    try:
        return b"".join(iter(partial(os.read, file, 2**20), b""))
    finally:
        os.close(file)
