"""Derived parameters: values that passes compute from a model's parameters alone.

A `DerivedParam` of a lowered program is a small program over parameter slots (a transposed weight,
a folded batch norm). It is evaluated when a plan first needs it, memoised by its text and the ids
of its sources, shared by the programs over one model, and freed with the model. `run_of` wraps a
plan so that callers pass the parameters of the traced program only.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from gptrs.backends.base import HOST, Plan
from gptrs.backends.parameter_cache import DerivedParameter, parameter_cache
from gptrs.identity_key import getter, identities
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import DerivedParam, Program
from gptrs.ir.registry import is_builtin, revision
from gptrs.ir.sizes import evaluate
from gptrs.ir.types import Array
from gptrs.locks import new_lock

Arguments: TypeAlias = Sequence[Array | Parameter | DeviceArray]
Run: TypeAlias = Callable[[Arguments, Mapping[str, int]], tuple[Array, ...]]
_Key: TypeAlias = tuple[str | int, ...]  # the definition's text and the ids of its sources


class _Definition:
    """The source of a derived parameter. Holds weak references: it does not keep the model
    alive."""

    def __init__(self, definition: Program, sources: Sequence[Parameter]) -> None:
        self._definition = definition
        self._sources = [weakref.ref(source) for source in sources]

    def load(self, name: str) -> Array:
        sources = [cast("Parameter", source()) for source in self._sources]
        (array,) = evaluate(self._definition, [source.numpy() for source in sources])
        for source in sources:
            source.release()  # seldom read by others, and it can be loaded again
        return array


def _text_of(definition: Program) -> tuple[str, int]:
    """What a definition says; the ops of users in it may be defined anew under their names."""
    own = any(not is_builtin(instruction.op) for instruction in definition.body)
    return str(definition), revision() if own else 0


class DerivedParameters:
    """Derived parameters by definition and sources: two programs over one model share them."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._known: dict[_Key, tuple[Parameter, list[weakref.ref[Parameter]]]] = {}

    def get(self, param: DerivedParam, sources: Sequence[Parameter]) -> Parameter:
        """The parameter that ``param`` stands for when its sources are ``sources``."""
        key: _Key = (*_text_of(param.definition), *map(id, sources))
        with self._lock:
            found = self._known.get(key)
            if found is None:
                definition = _Definition(param.definition, sources)
                made = DerivedParameter.of(param.name, param.type, definition, sources)
                parameter_cache.add_derived(made)

                def drop(_: object) -> None:
                    self._known.pop(key, None)

                found = made, [weakref.ref(source, drop) for source in sources]
                self._known[key] = found
            return found[0]


_DERIVED = DerivedParameters()


def run_of(program: Program, plan: Plan, *, stay: bool = False) -> Run:
    """A function that runs ``plan`` of ``program`` on the arguments without derived parameters.
    Results may ``stay`` on the device of the plan."""
    run = cast("Run", plan.run_on_device if stay and plan.device != HOST else plan.run)
    derived = [param for param in program.params if isinstance(param, DerivedParam)]
    return _Deriving(program, run, derived) if derived else run


def load(run: Run, plan: Plan, arguments: Arguments, sizes: Mapping[str, int]) -> None:
    """`Plan.load` for the arguments that ``run`` takes."""
    given = run.completed(arguments) if isinstance(run, _Deriving) else arguments
    plan.load(cast("Any", given), sizes)


class _Found(NamedTuple):
    sources: object  # their identities
    parameters: list[Parameter]
    watched: list[weakref.ref[Parameter]]


class _Deriving:
    """A plan that adds its derived parameters to the arguments. Those of the last call are cached
    by the identity of their sources: a hundred lookups take longer than some layers."""

    def __init__(self, program: Program, run: Run, derived: Sequence[DerivedParam]) -> None:
        place = {param: number for number, param in enumerate(program.params)}
        self._run = run
        self._derived = [(param, [place[source] for source in param.sources]) for param in derived]
        self._sources = getter(
            sorted({number for _, numbers in self._derived for number in numbers})
        )
        self._last: _Found | None = None

    def __call__(self, arguments: Arguments, sizes: Mapping[str, int]) -> tuple[Array, ...]:
        return self._run(self.completed(arguments), sizes)

    def completed(self, arguments: Arguments) -> list[Any]:
        """The arguments of the plan."""
        found, sources = self._last, self._sources(arguments)
        if found is None or found.sources != identities(sources):
            found = self._last = self._find(arguments, sources)
        return [*arguments, *found.parameters]

    def _find(self, arguments: Arguments, sources: Sequence[Parameter]) -> _Found:
        def drop(_: object) -> None:  # ids of freed objects are used again
            self._last = None

        parameters = [
            _DERIVED.get(param, [cast("Parameter", arguments[number]) for number in numbers])
            for param, numbers in self._derived
        ]
        watched = [weakref.ref(source, drop) for source in sources]
        return _Found(identities(sources), parameters, watched)
