"""Call cache of one jitted function: an equal call runs its plan without flattening or tracing.

`CallCache.find` runs first in every call of a `JitFunction`. It builds the fast key (`fast_key`),
looks up a `CachedCall` and evaluates its guard. `CallCache.store` adds a call after the slow path
has run it. At most 64 calls are kept, least recently used out; calls whose program the program
cache evicted go with it. `gptrs.jit.fast_path` describes the whole path.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import FunctionType
from typing import Any

from gptrs import settings, tree
from gptrs.environment_variables import raw_all
from gptrs.errors import PtirError
from gptrs.identity_key import getter
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.registry import revision
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type
from gptrs.jit import modes, overrides
from gptrs.jit.arguments import Arguments, sharing
from gptrs.jit.cache import Slot
from gptrs.jit.fast_path import assume_unchanged
from gptrs.jit.fast_path.fast_key import ArgumentBinding, add_static, add_traced, binding_of
from gptrs.jit.guards import Guard
from gptrs.jit.native_call.native import NativeCall, native_call, no_native_call
from gptrs.jit.native_call.record import Hit, Record, Results, record_of
from gptrs.jit.options import Options
from gptrs.jit.trace import Entry, Result, Traced
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import new_lock

_KEY_SETTINGS = (
    *(settings.eager, settings.backend, settings.overrides, settings.debug_nans, settings.check),
    *settings.REWRITING,
)
_KEY_VARIABLES = tuple([setting.name for setting in _KEY_SETTINGS])
_MAX_ENTRIES = 64  # calls, and argument bindings, per function
_MAX_RECORDS = 8  # of native calls, which try one after the other


@dataclass(frozen=True)
class ResultTree:
    """The return value of the function from the result arrays of a program at known shapes."""

    tensors: list[tuple[int, Type, bool]]  # result of the program, type, weak
    fixed: list[tuple[int, object]]  # leaves that are no tensors: index, value
    join: Callable[[list[object]], object]
    structure: tree.Structure
    is_tensor: bool  # the result is one tensor, and no container

    def __call__(self, arrays: Sequence[Array]) -> object:
        if self.is_tensor:
            index, type, weak = self.tensors[0]
            return Tensor.of_array(arrays[index], type, weak=weak)
        make = Tensor.of_array
        return self.joined([make(arrays[i], type, weak=weak) for i, type, weak in self.tensors])

    def joined(self, leaves: list[object]) -> object:
        """The return value from its tensors."""
        for place, leaf in self.fixed:
            leaves.insert(place, leaf)
        return self.join(leaves)

    def native(self) -> Results:
        """The same for native calls."""
        is_tuple = self.structure.kind is tuple and not self.fixed
        flat = all(child == tree.LEAF for child in self.structure.children)
        join = None if self.is_tensor else self.joined
        return Results(self.tensors, join, is_tuple=is_tuple and flat)


class CachedCall:
    """A call that was run: program, argument handling and result tree, valid while its guard
    holds."""

    __slots__ = (
        *("_donated", "_parameters", "_run"),
        *("donated", "guard", "hits", "result_tree", "sizes", "slot", "used"),
    )

    def __init__(
        self,
        guard: Guard,
        slot: Slot[Entry],
        sizes: Mapping[str, int],
        donated: Mapping[int, tuple[int, str]],
        result_tree: ResultTree,
    ) -> None:
        places = guard.parameter_places
        slots = slot.entry.traced.slots
        self.guard = guard
        self.slot = slot
        self.used = slot.used
        self.hits = 0  # those that no native call answered
        self.donated = frozenset(donated)  # indices of inputs
        self._donated = list(donated.values())  # indices of tensors, and the taker that errors name
        self._run = slot.entry.run
        self.sizes = sizes
        self._parameters = getter([places[place] for place in slots if isinstance(place, int)])
        self.result_tree = result_tree

    def run(self, call: CallLookup, values: Sequence[Any]) -> Any:
        """The results for the arrays of ``call`` and the parameters among ``values``."""
        self.used = self.slot.used
        try:
            arrays = self._run([*call.arrays, *self._parameters(values)], self.sizes)
        except PtirError:  # as in `gptrs.jit.function`
            raise
        except BaseException:
            self._donate(call)
            raise
        if self._donated:
            self._donate(call)
        return self.result_tree(arrays)

    def _donate(self, call: CallLookup) -> None:
        for place, taker in self._donated:
            call.tensors[place].donate(taker)


class CallLookup:
    """The lookup of one call: its key, the arrays and objects among its arguments, and the
    `CachedCall` that it hits, if its guard holds."""

    __slots__ = ("arrays", "cached", "key", "roots", "tensors", "values")

    key: tuple[Hashable, ...]
    arrays: list[Array | DeviceArray]
    tensors: list[Tensor]
    roots: list[object]
    cached: CachedCall | None
    values: Sequence[Any]  # read by the guard of ``cached``


class CallCache:
    """The cached calls of ``function``. Several threads may use it."""

    def __init__(
        self, function: FunctionType, name: str, signature: inspect.Signature, options: Options
    ) -> None:
        self._name = name
        self._function = function
        self._signature = signature
        self._static = options.static
        self._bindings: dict[object, ArgumentBinding] = {}
        self._cached: dict[tuple[Hashable, ...], CachedCall] = {}
        self._lock = new_lock()
        self.records: list[Record] = []
        """For native calls (`gptrs.jit.native_call`), the newest first."""
        self.native: NativeCall = no_native_call

    def find(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> CallLookup | None:
        """The lookup of this call; None when the call cannot be cached.

        Arguments that the function does not accept are not detected here: the slow path raises.
        """
        try:
            shape = (len(args), *kwargs) if kwargs else len(args)
            binding = self._bindings.get(shape) or self._new_binding(shape, len(args), kwargs)
            tokens: list[Hashable] = [shape, tree.generation, *modes.chosen_here()]
            tokens += *overrides.chosen_here(), revision(), *raw_all(_KEY_VARIABLES)
            call = CallLookup()
            arrays, tensors, roots = call.arrays, call.tensors, call.roots = [], [], []
            values = args if binding.order is None else binding.arrange(args, kwargs)
            if binding.static is None:
                add_traced(values, tokens, arrays, tensors, roots)
            else:
                for value, static in zip(values, binding.static, strict=True):
                    if static:
                        add_static(value, tokens, roots)
                    else:
                        add_traced((value,), tokens, arrays, tensors, roots)
            call.key = tuple(tokens)
            call.cached = cached = self._cached.get(call.key)
        except Exception:
            return None
        if cached is not None:
            try:
                found = assume_unchanged.read(cached.guard, roots)
            except Exception:  # attributes that it reads may be gone
                found = None
            if found is None or (cached.donated and sharing(arrays, cached.donated)):
                call.cached = None
            else:
                call.values = found
        return call

    def _new_binding(self, shape: object, count: int, names: Mapping[str, Any]) -> ArgumentBinding:
        binding = binding_of(self._signature, count, names, self._static)
        with self._lock:
            if len(self._bindings) >= _MAX_ENTRIES:
                self._bindings.clear()
            self._bindings[shape] = binding
        return binding

    def store(
        self,
        call: CallLookup,
        arguments: Arguments,
        slot: Slot[Entry],
        arrays: Sequence[Any],
        leaves: Sequence[object],
    ) -> None:
        """Cache ``call``, whose program in ``slot`` ran on ``arrays`` and returned ``leaves``."""
        captures, traced = arguments.captures, slot.entry.traced
        placed = all(isinstance(place, int) for place in traced.slots)
        if not (captures.reads.repeatable and placed and _agree(call, arguments, arrays)):
            return
        tensors = {id(tensor): place for place, tensor in enumerate(call.tensors)}
        donated = {
            place: (tensors[id(leaf.tensor)], f"{self._name} (argument {leaf.path})")
            for place, leaf in enumerate(arguments.inputs)
            if leaf.donated
        }
        result_tree = _result_tree(traced, leaves)
        cached = CachedCall(
            Guard(self._function, captures), slot, arguments.sizes, donated, result_tree
        )
        with self._lock:
            self._cached[call.key] = cached
            if len(self._cached) > _MAX_ENTRIES:
                del self._cached[min(self._cached, key=lambda key: self._cached[key].used)]
        if slot.dropped:  # by another thread, which evicted its calls before this one came
            self.evict_dropped()

    def record(
        self, call: CallLookup, args: Sequence[Any], kwargs: Mapping[str, Any], ticks: object
    ) -> None:
        """Let a native call answer the next calls like ``call``, which was a hit.

        That takes a hundred times as long as a call: it is tried at the first hit, the second, the
        fourth and so on.
        """
        cached = call.cached
        if cached is None or cached.donated or (native := native_call()) is None:
            return
        cached.hits += 1
        if cached.hits & (cached.hits - 1):
            return
        launch = cached.slot.entry.plan.launch(cached.sizes)
        if launch is None:
            return
        shape = (len(args), *kwargs) if kwargs else len(args)
        record = record_of(
            Hit(
                args,
                kwargs,
                self._bindings.get(shape) or self._new_binding(shape, len(args), kwargs),
                len(call.arrays),
                len(call.roots),
                cached.guard,
                call.values,
                cached,
                cached.slot,
                ticks,
                _KEY_VARIABLES,
                cached.result_tree.native(),
            ),
            launch,
        )
        if record is not None:
            self.native = native
            with self._lock:
                others = [other for other in self.records if other[1] is not cached]
                self.records[:] = [record, *others[: _MAX_RECORDS - 1]]

    def evict_dropped(self) -> None:
        """Remove the calls whose programs the program cache evicted."""
        with self._lock:
            for key in [key for key, cached in self._cached.items() if cached.slot.dropped]:
                del self._cached[key]
            self.records[:] = [r for r in self.records if not r[1].slot.dropped]


def _agree(call: CallLookup, arguments: Arguments, arrays: Sequence[Array]) -> bool:
    """Whether the flattened call has the same arrays and objects as its fast key."""
    roots = arguments.captures.reads.roots
    return (
        len(call.arrays) == len(arrays)
        and len(call.roots) == len(roots)
        and all(map(_same, call.arrays, arrays))
        and all(a is b for a, b in zip(call.roots, roots, strict=True))
    )


def _same(a: Array | DeviceArray, b: Array) -> bool:
    """Whether two arrays are identical, or made from Python numbers of one type."""
    if a is b or isinstance(a, DeviceArray):
        return a is b
    return a.shape == b.shape == () and a.dtype == b.dtype


def _result_tree(traced: Traced, leaves: Sequence[object]) -> ResultTree:
    tensors: list[tuple[int, Type, bool]] = []
    fixed: list[tuple[int, object]] = []
    for place, (result, leaf) in enumerate(zip(traced.results, leaves, strict=True)):
        if isinstance(result, Result) and isinstance(leaf, Tensor):
            tensors.append((result.index, leaf.type, result.weak))
        else:
            fixed.append((place, leaf))
    is_tensor = traced.structure == tree.LEAF and not fixed
    return ResultTree(tensors, fixed, tree.joiner(traced.structure), traced.structure, is_tensor)
