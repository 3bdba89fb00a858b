"""Loaded object code: each kernel is read from the cache or compiled once per process, and kept.

`library(code)` returns the `Library` of a `Code`: from this process if its key is known, else from
disk (`gptrs.kernels.compiler.object_cache`), else compiled
(`gptrs.kernels.compiler.compile_processes`) and stored. Inside `together` this waits until the end
of the block, so that all misses of a plan are compiled on all cores. Emits the event `KernelReady`
for each library. Object code may also come from a file of a compiled function: `supply` takes it,
and `noted` with `objects_of` says what such a file has to hold.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar

from gptrs import events, settings
from gptrs.errors import ArgumentError, RetraceError
from gptrs.kernels.compiler import codegen, isa
from gptrs.kernels.compiler.cache_key import Code, cache_key, made_by, symbol
from gptrs.kernels.compiler.codegen import KernelError
from gptrs.kernels.compiler.object_cache import open_cache
from gptrs.kernels.compiler.shield import shielded
from gptrs.kernels.driver.threads import thread_count
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import new_lock, no_fork

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORTH_A_PROCESS = 4
"""Modules of LLVM: a tenth of a second each, and a process needs three until it can begin."""


@dataclass(frozen=True)
class KernelReady:
    """Event: functions were loaded from disk (``cached``) or compiled in ``seconds``.

    ``kernel``: they are kernels, and no part of a driver.
    """

    names: tuple[str, ...]
    cached: bool
    seconds: float
    kernel: bool


class Library:
    """Machine code that is loaded or compiled when its addresses are first read, if not before.

    It is never unloaded, as its addresses may still be in use.
    """

    cached: bool = False
    """Whether it came from disk."""
    seconds: float = 0.0
    """How long it took to load or to compile."""

    def __init__(self, code: Code, target: isa.Target, key: str) -> None:
        self.code, self.target, self.key = code, target, key
        self._addresses: Mapping[str, int] | None = None

    @property
    def ready(self) -> bool:
        """Whether it is loaded."""
        return self._addresses is not None

    @property
    def addresses(self) -> Mapping[str, int]:
        """The addresses of its functions, by name. Raises `KernelError`."""
        _note(self)
        if self._addresses is None:
            _obtain([self])
        assert self._addresses is not None
        return self._addresses

    def read(self) -> bool:
        """Load it from what was supplied or from disk; False if it is not there."""
        start = time.perf_counter()
        data = _supplied.pop(self.key, None) or self._stored()
        if data is None:
            return False
        try:
            self._load(data)
        except KernelError:
            return False  # compiled again, and replaced
        self.cached, self.seconds = True, time.perf_counter() - start
        return True

    def _stored(self) -> bytes | None:
        store = open_cache()
        return None if store is None else store.load(self.key)

    def object_code(self) -> bytes:
        """Its object code: from disk, else compiled again. Raises `KernelError`."""
        return self._stored() or self.code.build(self.target)

    def take(self, data: bytes, seconds: float) -> None:
        """Load object code that took ``seconds`` to compile, and store it on disk."""
        start, store = time.perf_counter(), open_cache()
        shielded(lambda: self._load(data))
        if store is not None:
            # Numba may be imported by now: stored under the key with the version that was used.
            store.store(cache_key(self.code, self.target), data, made_by())
        self.seconds = seconds + time.perf_counter() - start
        self.emit_ready()

    def _load(self, data: bytes) -> None:
        names = self.code.names
        loaded = codegen.load(data, [symbol(name) for name in names])
        self._addresses = {name: loaded[symbol(name)] for name in names}

    def emit_ready(self) -> None:
        """Emit the event that it is ready."""
        events.emit(KernelReady(self.code.names, self.cached, self.seconds, self.code.kernel))


# All libraries of this process, by key: equal requests share code, so memory does not grow with
# requests.
_libraries: dict[str, Library] = {}
_lock = new_lock()
_batch: ContextVar[list[Library] | None] = ContextVar("gptrs_batch", default=None)
_noted: ContextVar[dict[str, Library] | None] = ContextVar("gptrs_noted", default=None)
_supplied: dict[str, bytes] = {}  # object code of files, by key, until it is loaded
_refused: ContextVar[bool] = ContextVar("gptrs_compilation_refused", default=False)


def library(code: Code) -> Library:
    """The library of ``code``: loaded or compiled now, or where a block of `together` ends.

    Raises `KernelError`, and `ArgumentError` for a name that is none.
    """
    for name in code.names:
        if not _NAME.fullmatch(name):
            raise ArgumentError(f"{name!r} cannot name a kernel", fix="use letters, digits and _")
    target = isa.target(isa.current())
    key = cache_key(code, target)
    if (found := _libraries.get(key)) is None:
        found = _libraries.setdefault(key, Library(code, target, key))
    _note(found)
    if not found.ready:
        if (batch := _batch.get()) is None:
            _obtain([found])
        else:
            batch.append(found)
    return found


@contextmanager
def together() -> Generator[None]:
    """Kernels requested in the block are compiled when it ends, on all cores.

    Raises `KernelError` then.
    """
    if _batch.get() is not None:  # the block around this one compiles them
        yield
        return
    batch: list[Library] = []
    token = _batch.set(batch)
    try:
        yield
    finally:
        _batch.reset(token)
    _obtain(batch)


@contextmanager
def noted() -> Generator[dict[str, Library]]:
    """The libraries that are requested or whose addresses are read in the block, by key."""
    found: dict[str, Library] = {}
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def _note(library: Library) -> None:
    if (found := _noted.get()) is not None:
        found[library.key] = library


def objects_of(found: Mapping[str, Library]) -> dict[str, bytes]:
    """The object code by key of libraries that were `noted`, and of all that this package's
    builders wrote for this process: drivers, packing of weights, copies."""
    own = {key: x for key, x in _libraries.items() if x.ready and x.code.language != "python"}
    return {key: x.object_code() for key, x in {**own, **found}.items()}


def supply(objects: Mapping[str, bytes]) -> None:
    """Take object code by key for libraries that are not loaded yet, in place of what is on disk.

    It runs as it is: the caller vouches for where it came from.
    """
    _supplied.update({key: data for key, data in objects.items() if key not in _libraries})


@contextmanager
def refuse_compilation() -> Generator[None]:
    """In the block kernels are loaded alone: to compile one raises `RetraceError`."""
    token = _refused.set(True)
    try:
        yield
    finally:
        _refused.reset(token)


def compilation_refused() -> bool:
    """Whether this context is in a block of `refuse_compilation`."""
    return _refused.get()


def _obtain(libraries: Iterable[Library]) -> None:
    """Load libraries from disk, or compile them."""
    with _lock:
        wanted = [x for x in dict.fromkeys(libraries) if not x.ready]
        if not wanted:
            return
        for found in shielded(lambda: [x for x in wanted if x.read()]):
            found.emit_ready()
        missing = [x for x in wanted if not x.ready]
        if not missing:
            return
        kernels = [name for x in missing if x.code.kernel for name in x.code.names]
        if kernels and _refused.get():  # parts of drivers belong to the process, and to no call
            raise RetraceError(
                f"kernels would be compiled in a block of ptir.no_retrace(): {', '.join(kernels)}",
                fix="call the function before the block at the sizes that it has there",
            )
        with no_fork:
            from gptrs.kernels.compiler import (
                compile_processes,  # not needed where nothing is compiled
            )

        of = {x.code: x for x in missing}
        made = compile_processes.object_codes([*of], missing[0].target, _processes([*of]))
        with closing(made), events.working("compiling", len(missing), "kernels") as work:
            for code, data, seconds in made:
                of[code].take(data, seconds)
                work.done += 1


def _processes(codes: Sequence[Code]) -> int:
    """How many other processes are worth starting to compile ``codes``."""
    worth = sum(code.language != "python" for code in codes) // _WORTH_A_PROCESS
    return min(settings.compile_processes(), thread_count() - 1, worth)
