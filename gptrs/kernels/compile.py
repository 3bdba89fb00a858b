"""Kernels: native functions compiled once, kept on disk, loaded without a compiler.

A kernel is `void(intp arguments, intp first, intp last)`: the address of a block of 64-bit words
(pointers and sizes), and a half-open range of its parallel extent. It is written as LLVM IR or as
Python source that Numba compiles (see source.py for what it may say). Only a miss of the cache
needs Numba, and only for source.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from gptrs import events
from gptrs.errors import ArgumentError
from gptrs.kernels import isa, native
from gptrs.kernels.cache import open_cache
from gptrs.kernels.emit import KernelText
from gptrs.kernels.native import KernelError
from gptrs.kernels.symbols import ALLOWED

Language = Literal["llvm", "python", "builder"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGNATURE = "void (i64, i64, i64)"
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True)
class Code:
    """What is compiled: a text, the names of the functions it offers, what they may call."""

    language: Language
    text: str
    """LLVM IR, Python source, or which builder writes the IR and for what."""
    names: tuple[str, ...]
    calls: frozenset[str] = ALLOWED
    kernel: bool = True
    """Whether the functions are kernels; others may have any signature."""
    build_text: Callable[[], KernelText] | None = None
    """The builder."""

    @property
    def source(self) -> str:
        """The text that is compiled."""
        return self.text if self.build_text is None else self.build_text().text

    def module(self, target: isa.Target) -> Any:
        """The LLVM module, optimised for ``target``. Raises `KernelError`."""
        if self.language == "python":
            from gptrs.kernels import source  # needs Numba: half a second to import

            module, entry = source.lower(self.text, self.names[0])
            return native.optimised(module, {entry: symbol(self.names[0])}, target)
        if self.build_text is not None and self.kernel:
            text, entry = self.build_text()
            module = native.parse(text)
            native.check_function(module, entry, _SIGNATURE)
            return native.optimised(module, {entry: symbol(self.names[0])}, target)
        module = native.parse(self.source)
        for name in self.names:
            native.check_function(module, name, _SIGNATURE if self.kernel else "")
        return native.optimised(module, {name: symbol(name) for name in self.names}, target)

    def build(self, target: isa.Target) -> bytes:
        """The object code for ``target``. Raises `KernelError`."""
        try:
            return native.emit_object(self.module(target), target, self.calls)
        except KernelError as error:
            error.context.append(f"kernel {', '.join(self.names)} for {target.isa.name}")
            raise

    def assembly(self, target: isa.Target) -> str:
        """The assembly text for ``target``, compiled anew: for looking."""
        return native.emit_assembly(self.module(target), target)


@dataclass(frozen=True, eq=False)
class Library:
    """Code that is loaded, for good: machine code is never unloaded."""

    code: Code
    target: isa.Target
    key: str
    addresses: Mapping[str, int]
    cached: bool
    """Whether it came from disk."""
    seconds: float
    """How long it took to load or to compile."""


@dataclass(frozen=True)
class KernelReady:
    """Event: functions were loaded from disk (``cached``) or compiled in ``seconds``.

    ``kernel``: they are kernels, and no part of a driver.
    """

    names: tuple[str, ...]
    cached: bool
    seconds: float
    kernel: bool


@dataclass(frozen=True)
class Kernel:
    """One native function ``void(intp arguments, intp first, intp last)``."""

    name: str
    library: Library

    @property
    def address(self) -> int:
        """Where its machine code is."""
        return self.library.addresses[self.name]

    @property
    def source(self) -> str:
        """The text that it was compiled from."""
        return self.library.code.source

    def assembly(self) -> str:
        """Its assembly text, compiled anew: for looking."""
        return self.library.code.assembly(self.library.target)

    def __call__(self, arguments: int, first: int, last: int) -> None:
        """Run it in this thread: for tests, as a call costs a microsecond."""
        _FUNCTION(self.address)(arguments, first, last)


def compile_ir(text: object, name: str) -> Kernel:
    """The kernel ``@name`` of an LLVM module, given as text or as an llvmlite ``ir.Module``.

    Raises `KernelError` when LLVM rejects it or it calls more than mathematical functions.
    """
    return Kernel(name, _library(Code("llvm", str(text), (name,))))


def compile_built(
    builder: Callable[..., KernelText], level: isa.Isa, *arguments: Any, **options: Any
) -> Kernel:
    """The kernel that ``builder(level, *arguments, **options)`` writes, a function of this package.

    Writing the text of a large kernel takes longer than loading its code: the cache knows it by the
    builder, what it is given, and the sources of this package. Raises `KernelError`.
    """
    given = [*arguments, *(name for name, value in options.items() if value is True)]
    given += [value for value in options.values() if not isinstance(value, bool)]
    words = [str(getattr(value, "label", value)) for value in given]
    name = re.sub(r"\W", "_", "_".join([builder.__name__.removesuffix("_kernel"), *words]))
    if not _has_sources():
        return compile_ir(*builder(level, *arguments, **options))
    which = f"{builder.__module__}.{builder.__qualname__} {level} {arguments} {options}"
    code = Code("builder", which, (name,), build_text=lambda: builder(level, *arguments, **options))
    return Kernel(name, _library(code))


@cache
def _sources() -> tuple[Path, ...]:
    """The sources of this package, on which what builders write depends."""
    return tuple(sorted(p for p in Path(__file__).parent.glob("*.py") if p.name != "__init__.py"))


def _has_sources() -> bool:
    return all(map(_text, _sources()))


def compile_source(source: str, name: str) -> Kernel:
    """The kernel that the Python function ``name(arguments, first, last)`` in ``source`` describes.

    Raises `KernelError` when Numba rejects it or it calls more than mathematical functions.
    """
    return Kernel(name, _library(Code("python", source, (name,))))


def compile_functions(
    build: Callable[[], str], names: Iterable[str], calls: Iterable[str] = ()
) -> Mapping[str, int]:
    """The addresses of functions of any signature in the LLVM module that ``build`` writes, a
    function of this package.

    ``calls`` are functions of this process that they may call besides the mathematical ones.
    Raises `KernelError`.
    """
    wanted, allowed = tuple(names), ALLOWED | frozenset(calls)
    if not _has_sources():
        return _library(Code("llvm", build(), wanted, allowed, kernel=False)).addresses
    which = f"{build.__module__}.{build.__qualname__}"
    code = Code("builder", which, wanted, allowed, False, lambda: KernelText(build(), which))
    return _library(code).addresses


def symbol(name: str) -> str:
    """What a kernel is called in its object code: never like a function that it calls."""
    return f"gptrs_{name}"


# Everything ever loaded, by key: a plan that asks again gets the same code, so memory does not
# grow with requests. Entries are never dropped, as nobody knows who still holds an address.
_libraries: dict[str, Library] = {}
_lock = threading.Lock()


def _library(code: Code) -> Library:
    for name in code.names:
        if not _NAME.fullmatch(name):
            raise ArgumentError(f"{name!r} cannot name a kernel", fix="use letters, digits and _")
    target = isa.target(isa.current())
    key = cache_key(code, target)
    if (found := _libraries.get(key)) is not None:
        return found
    with _lock:
        if (found := _libraries.get(key)) is None:
            found = _libraries[key] = _obtain(code, target, key)
    return found


def _obtain(code: Code, target: isa.Target, key: str) -> Library:
    """Load ``code`` from disk, or compile it and keep it there."""
    start = time.perf_counter()
    store = open_cache()
    addresses: dict[str, int] | None = None
    if store is not None and (data := store.load(key)) is not None:
        try:
            addresses = _load(code, data)
        except KernelError:
            addresses = None  # compiled again, and replaced
    cached = addresses is not None
    if addresses is None:
        data = code.build(target)
        addresses = _load(code, data)
        if store is not None:
            # Numba is imported by now: kept for those who will find the version that was used.
            store.store(cache_key(code, target), data)
    library = Library(code, target, key, addresses, cached, time.perf_counter() - start)
    events.emit(KernelReady(code.names, cached, library.seconds, code.kernel))
    return library


def _load(code: Code, data: bytes) -> dict[str, int]:
    loaded = native.load(data, [symbol(name) for name in code.names])
    return {name: loaded[symbol(name)] for name in code.names}


def cache_key(code: Code, target: isa.Target) -> str:
    """A digest of all that the object code of ``code`` depends on; does not import Numba."""
    digest = _digest_of(target, code.calls).copy()
    if code.language == "python":
        _add(digest, numba_version(), *map(str, sys.version_info[:2]))
    if code.language == "builder":
        _add(digest, *map(_text, _sources()))
    _add(digest, code.language, str(code.kernel), *code.names, code.text)
    return digest.hexdigest()


@cache
def _digest_of(target: isa.Target, calls: frozenset[str]) -> hashlib.blake2b:
    """The part of the key that nearly all kernels for ``target`` share."""
    digest = hashlib.blake2b(digest_size=20)
    _add(digest, target.triple, target.cpu, target.features, native.version())
    _add(digest, str(native.OPTIMISATION), *native.FAST_MATH, *sorted(calls))
    # How kernels are compiled is code too: no version number to forget.
    for file in ("compile.py", "native.py", "source.py", "math.py", "reduce.py", "emit.py"):
        _add(digest, _text(Path(__file__).with_name(file)))
    return digest


def _add(digest: hashlib.blake2b, *texts: str) -> None:
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
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
    text = _text(Path(spec.origin).with_name("_version.py"))
    if found := re.search(r'"version": *"([^"]+)"', text):
        return found[1]
    from importlib.metadata import PackageNotFoundError, version  # 50 ms, seldom needed

    try:
        return version("numba")
    except PackageNotFoundError:
        return "unknown"


@cache
def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""  # installed without sources
