"""``ptir.jit``: a Python function that is traced once per kind of arguments, then run as a plan.

`JitFunction.__call__` tries the fast path (`gptrs.jit.fast_path`), then the program cache
(`gptrs.jit.cache`), then traces and lowers (`gptrs.jit.lower`). The package page `gptrs.jit` has
the order of a call. Errors leave with the user's frames only (`gptrs.errors.user_traceback`).
"""

from __future__ import annotations

import functools
import inspect
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast, overload

from gptrs import events, settings, tree
from gptrs.backends.base import HOST, Backend
from gptrs.backends.selection import selected
from gptrs.collector import rare_collections
from gptrs.debug.explain import Explanation
from gptrs.debug.lowering import LoweringBegan
from gptrs.debug.passes import Passes
from gptrs.debug.profile.profile import Profile
from gptrs.debug.view.view import View
from gptrs.debug.watch import watched
from gptrs.errors import (
    ArgumentError,
    E,
    PtirError,
    RetraceWarning,
    raised_at,
    user_location,
    user_traceback,
    warn,
)
from gptrs.ir.device_array import on_host
from gptrs.ir.dims import Dim, size_at
from gptrs.ir.dispatch import current
from gptrs.ir.program import Program
from gptrs.ir.registry import revision
from gptrs.ir.tensor import Tensor
from gptrs.jit.advice import advice
from gptrs.jit.ahead_of_time import Lowered, lower
from gptrs.jit.arguments import Arguments, Input, bind, collect
from gptrs.jit.cache import CacheInfo, Key, ProgramCache, Reason, Retrace, Retraces, Slot
from gptrs.jit.captures import Captures
from gptrs.jit.chooser import chooser
from gptrs.jit.eager import run_eagerly
from gptrs.jit.fast_path.call_cache import CallCache, CallLookup
from gptrs.jit.lower import passes_over, prepare, record
from gptrs.jit.miss_report import reported
from gptrs.jit.modes import backend_name, is_eager
from gptrs.jit.no_retrace import refuse_trace
from gptrs.jit.numerics.traced_call import Given, TracedCall
from gptrs.jit.numerics.watch import Watch, is_watched
from gptrs.jit.options import Options
from gptrs.jit.overrides import Overrides, in_effect
from gptrs.jit.pickled_name import importable_name
from gptrs.jit.trace import Entry, Result, Traced
from gptrs.jit.view import view
from gptrs.locks import new_lock

P = ParamSpec("P")
R = TypeVar("R")
_KEPT_RETRACES = 1000


class JitFunction(Generic[P, R]):
    """A decorated function. Call it like the function; `program` shows what it became."""

    def __init__(self, function: Callable[P, R], options: Options, name: str | None) -> None:
        self._function = function if isinstance(function, FunctionType) else _as_function(function)
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise ArgumentError(
                f"{function.__qualname__} is a generator or a coroutine, which runs after its call",
                fix="return a tuple, or jit the part that computes",
            )
        self._signature = inspect.signature(function)
        self.name = name or getattr(function, "__qualname__", "function").replace("<locals>.", "")
        self._options = options = options.resolve(self._signature, self.name)
        self._cache: ProgramCache[Entry] = ProgramCache(settings.cache_size)
        self._calls = CallCache(self._function, self.name, self._signature, options)
        self._tracing = new_lock()
        self._retraces: deque[Retrace] = deque(maxlen=_KEPT_RETRACES)
        self._warned = False
        functools.update_wrapper(self, cast("Callable[..., Any]", function), updated=())

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload  # arrays, numbers and nested lists in place of Tensors
    def __call__(self, *args: Any, **kwargs: Any) -> R: ...

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        calls = self._calls
        if records := calls.records:
            native = calls.native  # as an attribute: the look-up of a method takes longer
            try:
                found = native(records, args, kwargs)
            except Exception as error:
                raise _for_user(error)  # noqa: B904 - the same error
            if found is not NotImplemented:
                return found
        if current() is not None:  # inlined into the trace or eager run of another function
            return cast("R", self._function(*map(_own, args), **_own_values(kwargs)))
        try:
            call = calls.find(args, kwargs)
            if call is not None and (cached := call.cached) and self._cache.use(cached.slot):
                result = cached.run(call, call.values)
                calls.record(call, args, kwargs, self._cache.ticks)
                return result
            arguments = self._collect(args, kwargs)
            if is_eager():
                result = run_eagerly(self._function, arguments, self._options)
                self._donate(arguments.inputs)
            else:
                result = self._run(arguments, call)
        except Exception as error:
            raise _for_user(error)  # noqa: B904 - the same error
        return cast("R", result)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        """By reference, as functions are pickled: module and qualified name. Programs and kernels
        are not part of it. Raises `ArgumentError` for what cannot be found by its name."""
        return importable_name(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<ptir.jit {self.name}{self._signature}>"

    def derived(self, function: Callable[..., Any], name: str) -> JitFunction[..., Any]:
        """Another function with the options of this one, but for those about its arguments' memory
        and sizes."""
        options = replace(self._options, donated=frozenset(), dynamic={})
        return JitFunction(function, options, name)

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The program that a call with these arguments runs, as it was traced."""
        return self._slot_for(args, kwargs).entry.traced.program

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function traced for these arguments: arrays, or `ptir.Type`s in place of them, such
        as ``ptir.Type.parse("f32[?N,3]")``. ``.compile()`` makes it a function of its own that
        never traces, and that ``.save(path)`` writes to a file for `ptir.load_compiled`."""
        try:
            overrides = in_effect(self._options.overrides)
            given = self._function, self._options, overrides, self._backend()
            return lower(self.name, self._signature, args, kwargs, *given)
        except Exception as error:
            raise _for_user(error)  # noqa: B904 - the same error

    def lowered(self, *args: Any, **kwargs: Any) -> Program:
        """The program after all passes, as the backend gets it."""
        return self._slot_for(args, kwargs).entry.lowered

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """The plan of a call with these arguments: steps in kernels, fused loops and the reference
        backend, copies, and memory of intermediate values. Print it."""
        try:
            arguments = self._collect(args, kwargs)
            entry = self._slot(arguments).entry
            return Explanation(entry.plan.report(arguments.sizes), entry.choices)
        except Exception as error:
            raise _for_user(error)  # noqa: B904 - the same error

    def passes(self, *args: Any, **kwargs: Any) -> Passes:
        """The passes over the program of a call with these arguments. Print it for diffs."""
        try:
            arguments, backend = self._collect(args, kwargs), self._backend()
            traced = self._slot(arguments).entry.traced
            overrides, options = in_effect(self._options.overrides), self._options
            choose = chooser(overrides, backend, arguments.sizes, options.is_precise)
            return passes_over(traced.program, backend, options, choose)
        except Exception as error:
            raise _for_user(error)  # noqa: B904 - the same error

    def view(self, *args: Any, **kwargs: Any) -> View:
        """The program of a call with these arguments, its passes and its plan as an HTML page: a
        notebook shows it, ``.save(path)`` writes it. The function is traced for it, and not run; a
        trace or a lowering that fails is drawn up to there."""
        try:
            arguments, backend = self._collect(args, kwargs), self._backend()
            overrides = in_effect(self._options.overrides)
            given = self._function, arguments, self.name, backend, self._options, overrides
            return view(*given)
        except Exception as error:
            raise _for_user(error)  # noqa: B904 - the same error

    def traced_call(self, *args: Any, **kwargs: Any) -> TracedCall:
        """The program of a call as it is traced, with its arguments: what `ptir.compare` runs."""
        try:
            arguments = self._collect(args, kwargs)
            arguments.captures.entries()
            traced = record(self._function, arguments, self.name, self._options)
            return self._call_of(arguments, traced)
        except Exception as error:
            raise _for_user(error)  # noqa: B904 - the same error

    def profile(self, *args: Any, **kwargs: Any) -> Profile:
        """The profile of one call with these arguments; ``.result`` is what it returns."""
        from gptrs.debug.profile.recorder import profile  # late: the driver is not for tracing

        with profile() as found:
            found.result = self(*args, **kwargs)
        return found

    def cache_info(self) -> CacheInfo:
        """Hits, misses and sizes of the program cache."""
        return self._cache.info()

    def clear_cache(self) -> None:
        """Remove all programs, so that the next call traces again."""
        self._cache.clear()
        self._calls.evict_dropped()

    def retraces(self) -> Retraces:
        """The calls that were traced and the reason of each, oldest first: a list of `Retrace`.
        Print it."""
        return Retraces(self._retraces)

    def _collect(self, args: Any, kwargs: Any) -> Arguments:
        captures = Captures(self._function)
        bound = bind(self._signature, self.name, args, kwargs)
        return collect(bound, self._options, captures)

    def _slot_for(self, args: Any, kwargs: Any) -> Slot[Entry]:
        try:
            return self._slot(self._collect(args, kwargs))
        except Exception as error:
            raise _for_user(error)  # noqa: B904 - the same error

    def _backend(self) -> Backend:
        return selected(self._options.backend or backend_name())

    def _slot(self, arguments: Arguments) -> Slot[Entry]:
        backend = self._backend()
        overrides = in_effect(self._options.overrides)
        reads = arguments.captures.entries()
        modes = ("backend", backend.name), ("overrides", (str, overrides.key))
        modes = (*modes, ("registry", (int, revision())))
        rewriting = [(s.name, (type(value := s()), value)) for s in settings.REWRITING]
        key: Key = (*arguments.key, *modes, *rewriting, *reads)
        slot = self._cache.find(key)
        if slot is not None:
            return slot
        with self._tracing:  # one thread traces, the others use its program
            slot = self._cache.find(key)
            if slot is not None:
                return slot
            reason = self._cache.reason(key)
            refuse_trace(self.name, reason, self._signature)
            return self._trace(arguments, key, reason, backend, overrides)

    def _trace(
        self,
        arguments: Arguments,
        key: Key,
        reason: Reason,
        backend: Backend,
        overrides: Overrides,
    ) -> Slot[Entry]:
        for text, category in settings.complaints():
            warn(text, category)
        start = time.perf_counter()
        function, options = self._function, self._options
        where = user_location()
        events.emit(LoweringBegan(self.name, reason, where))
        report = reported(self.name, self._signature, self._cache.counters, reason, where)
        with (
            events.working(f"compiling {self.name}"),
            watched(self.name, reason, where),
            report,
            rare_collections(),
        ):
            entry = prepare(function, arguments, self.name, backend, options, overrides)
        milliseconds = (time.perf_counter() - start) * 1e3
        retrace = Retrace(self.name, reason, where, milliseconds)
        self._retraces.append(retrace)
        events.emit(retrace)
        slot, full = self._cache.add(key, entry)
        if full:
            self._calls.evict_dropped()
        if full and not self._warned:
            self._warned = True
            fixes = filter(None, (advice(str(reason), self._signature), "raise GPTRS_CACHE_SIZE"))
            warn(
                f"{self.name} has more than {settings.cache_size()} programs and drops the least"
                f" recently used. The last call was traced because of {reason}. Fix:"
                f" {', or '.join(fixes)}.",
                RetraceWarning,
            )
        return slot

    def _run(self, arguments: Arguments, call: CallLookup | None) -> Any:
        slot = self._slot(arguments)
        entry = slot.entry
        traced = entry.traced
        given = _given(arguments, traced, entry.plan.device)
        watch = Watch(self._call_of(arguments, traced)) if is_watched() else None
        run = entry.run if watch is None else partial(watch.run, entry.run)
        try:
            arrays = run(given, arguments.sizes)
        except PtirError:  # it leaves donated arguments as they were
            raise
        except BaseException:  # an interrupt may leave them partly overwritten
            self._donate(arguments.inputs)
            raise
        self._donate(arguments.inputs)
        if watch is not None:
            watch.judge([on_host(array) for array in arrays])
        leaves: list[Any] = []
        for result in traced.results:
            if isinstance(result, Result):
                leaves.append(Tensor.of_array(arrays[result.index], weak=result.weak))
            else:
                size = isinstance(result, Dim)
                leaves.append(size_at(result, arguments.sizes) if size else result)
        if call is not None and watch is None:
            self._calls.store(call, arguments, slot, given[: len(arguments.inputs)], leaves)
        return tree.unflatten(traced.structure, leaves)

    def _call_of(self, arguments: Arguments, traced: Traced) -> TracedCall:
        given: Given = _given(arguments, traced, HOST)
        options, overrides = self._options, in_effect(self._options.overrides)
        setup = self._backend(), options, overrides
        return TracedCall(self.name, traced.program, given, arguments.sizes, *setup)

    def _donate(self, inputs: Iterable[Input]) -> None:
        for leaf in inputs:
            if leaf.donated:
                leaf.tensor.donate(f"{self.name} (argument {leaf.path})")


def _given(arguments: Arguments, traced: Traced, device: str) -> tuple[Any, ...]:
    """The arguments of the traced program, arrays, then parameters, for a plan on ``device``."""
    found = arguments.captures.parameters
    parameters = (found[s] if isinstance(s, int) else s for s in traced.slots)
    tensors = (leaf.tensor for leaf in arguments.inputs)
    arrays = (t.numpy() if device == HOST else t.held() for t in tensors)
    return (*arrays, *parameters)


def _as_function(target: Callable[..., Any]) -> FunctionType:
    """A plain function that calls ``target`` (a bound method, a partial, a callable object)."""
    if isinstance(target, staticmethod | classmethod):
        word = type(target).__name__  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        raise ArgumentError(f"ptir.jit found a {word}", fix=f"write @{word} above @ptir.jit")
    if not callable(target):
        raise ArgumentError(f"ptir.jit takes a function, found {target!r}")

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    return cast("FunctionType", call)


def _own(argument: Any) -> Any:
    """A Tensor as one that the function may write into without the caller seeing it."""
    return argument.copy() if type(argument) is Tensor else argument


def _own_values(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: _own(value) for name, value in kwargs.items()}


def _for_user(error: E) -> E:
    """``error`` with the user's lines alone in its traceback, and the innermost in its text."""
    shortened = user_traceback(error, full=settings.full_traceback())
    if isinstance(shortened, PtirError) and shortened.where is None:
        shortened.where = raised_at(shortened) or user_location()
    return shortened
