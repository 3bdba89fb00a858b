"""The calls of one function that are remembered: an equal call goes straight to its program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from gptrs import settings, tree
from gptrs.errors import PtirError
from gptrs.identity_key import getter
from gptrs.ir.registry import revision
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type
from gptrs.jit import modes, overrides
from gptrs.jit.arguments import Arguments, Options, sharing
from gptrs.jit.cache import Slot
from gptrs.jit.fast_path import assume_unchanged
from gptrs.jit.fast_path.fast_key import Form, add, add_static, form_of
from gptrs.jit.guards import Guard
from gptrs.jit.trace import Entry, Result, Traced
from gptrs.locks import new_lock

_DECIDING = (settings.eager, settings.backend, settings.overrides, *settings.REWRITING)
_VARIABLES = tuple([setting.name for setting in _DECIDING])
_KEPT = 64  # calls, and forms of calls, per function


@dataclass(frozen=True)
class Outcome:
    """How the results of a program become those of the function, for inputs of known shapes."""

    tensors: list[tuple[int, Type, bool]]  # result of the program, type, weak
    fixed: list[tuple[int, object]]  # what is no tensor, and its place among the leaves
    join: Callable[[list[object]], object]
    is_tensor: bool  # the only leaf, returned as it is

    def __call__(self, arrays: Sequence[Array]) -> object:
        if self.is_tensor:
            index, type, weak = self.tensors[0]
            return Tensor.of_array(arrays[index], type, weak=weak)
        make = Tensor.of_array
        leaves: list[object] = [make(arrays[i], type, weak=weak) for i, type, weak in self.tensors]
        for place, leaf in self.fixed:
            leaves.insert(place, leaf)
        return self.join(leaves)


class Remembered:
    """A call that was made: what its program needs and gives, as long as the guard holds."""

    __slots__ = (
        *("_donated", "_outcome", "_parameters", "_run", "_sizes"),
        *("donated", "guard", "slot", "used"),
    )

    def __init__(
        self,
        guard: Guard,
        slot: Slot[Entry],
        sizes: Mapping[str, int],
        donated: Mapping[int, tuple[int, str]],
        outcome: Outcome,
    ) -> None:
        places = guard.parameter_places
        slots = slot.entry.traced.slots
        self.guard = guard
        self.slot = slot
        self.used = slot.used
        self.donated = frozenset(donated)  # places among the inputs
        self._donated = list(donated.values())  # places among the tensors, and what took them
        self._run = slot.entry.run
        self._sizes = sizes
        self._parameters = getter([places[place] for place in slots if isinstance(place, int)])
        self._outcome = outcome

    def run(self, call: Call, values: Sequence[Any]) -> Any:
        """The results for the arrays of ``call`` and the parameters among ``values``."""
        self.used = self.slot.used
        try:
            arrays = self._run([*call.arrays, *self._parameters(values)], self._sizes)
        except PtirError:  # as in `gptrs.jit.function`
            raise
        except BaseException:
            self._donate(call)
            raise
        if self._donated:
            self._donate(call)
        return self._outcome(arrays)

    def _donate(self, call: Call) -> None:
        for place, taker in self._donated:
            call.tensors[place].donate(taker)


class Call:
    """A sketch of a call, and the call like it that was made before if nothing changed since."""

    __slots__ = ("arrays", "key", "known", "roots", "tensors", "values")

    key: tuple[Hashable, ...]
    arrays: list[Array]
    tensors: list[Tensor]
    roots: list[object]
    known: Remembered | None
    values: Sequence[Any]  # what its guard read


class CallCache:
    """What is remembered of the calls of ``function``. Several threads may use it."""

    def __init__(
        self, function: FunctionType, name: str, signature: inspect.Signature, options: Options
    ) -> None:
        self._name = name
        self._function = function
        self._signature = signature
        self._static = options.static
        self._forms: dict[object, Form] = {}
        self._known: dict[tuple[Hashable, ...], Remembered] = {}
        self._lock = new_lock()

    def find(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
        """A sketch of this call; None when it cannot be remembered.

        It may be wrong as well: that shows when it is taken apart.
        """
        try:
            shape = (len(args), *kwargs) if kwargs else len(args)
            form = self._forms.get(shape) or self._new_form(shape, len(args), kwargs)
            tokens: list[Hashable] = [shape, tree.generation, *modes.chosen_here()]
            tokens += *overrides.chosen_here(), revision(), *settings.raw_all(_VARIABLES)
            call = Call()
            arrays, tensors, roots = call.arrays, call.tensors, call.roots = [], [], []
            values = args if form.order is None else form.arrange(args, kwargs)
            if form.static is None:
                add(values, tokens, arrays, tensors, roots)
            else:
                for value, static in zip(values, form.static, strict=True):
                    if static:
                        add_static(value, tokens, roots)
                    else:
                        add((value,), tokens, arrays, tensors, roots)
            call.key = tuple(tokens)
            call.known = known = self._known.get(call.key)
        except Exception:
            return None
        if known is not None:
            try:
                found = assume_unchanged.read(known.guard, roots)
            except Exception:  # what it reads may be gone
                found = None
            if found is None or (known.donated and sharing(arrays, known.donated)):
                call.known = None
            else:
                call.values = found
        return call

    def _new_form(self, shape: object, count: int, names: Mapping[str, Any]) -> Form:
        form = form_of(self._signature, count, names, self._static)
        with self._lock:
            if len(self._forms) >= _KEPT:
                self._forms.clear()
            self._forms[shape] = form
        return form

    def remember(
        self,
        call: Call,
        arguments: Arguments,
        slot: Slot[Entry],
        arrays: Sequence[Any],
        leaves: Sequence[object],
    ) -> None:
        """Remember ``call``: the program in ``slot`` ran on ``arrays`` and gave ``leaves``."""
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
        outcome = _outcome(traced, leaves)
        known = Remembered(Guard(self._function, captures), slot, arguments.sizes, donated, outcome)
        with self._lock:
            self._known[call.key] = known
            if len(self._known) > _KEPT:
                del self._known[min(self._known, key=lambda key: self._known[key].used)]
        if slot.dropped:  # by another thread, which forgot its calls before this one came
            self.forget_dropped()

    def forget_dropped(self) -> None:
        """Forget the calls whose programs are no longer kept."""
        with self._lock:
            for key in [key for key, known in self._known.items() if known.slot.dropped]:
                del self._known[key]


def _agree(call: Call, arguments: Arguments, arrays: Sequence[Array]) -> bool:
    """Whether the call, taken apart, has the arrays and objects that its sketch has."""
    roots = arguments.captures.reads.roots
    return (
        len(call.arrays) == len(arrays)
        and len(call.roots) == len(roots)
        and all(map(_same, call.arrays, arrays))
        and all(a is b for a, b in zip(call.roots, roots, strict=True))
    )


def _same(a: Array, b: Array) -> bool:
    """Whether two arrays are one, or made of numbers of one type."""
    return a is b or (a.shape == b.shape == () and a.dtype == b.dtype)


def _outcome(traced: Traced, leaves: Sequence[object]) -> Outcome:
    tensors: list[tuple[int, Type, bool]] = []
    fixed: list[tuple[int, object]] = []
    for place, (result, leaf) in enumerate(zip(traced.results, leaves, strict=True)):
        if isinstance(result, Result) and isinstance(leaf, Tensor):
            tensors.append((result.index, leaf.type, result.weak))
        else:
            fixed.append((place, leaf))
    is_tensor = traced.structure == tree.LEAF and not fixed
    return Outcome(tensors, fixed, tree.joiner(traced.structure), is_tensor)
