"""Parameters that passes derive from a model's: computed when first needed, gone with the model."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias, cast

from gptrs.backends.base import Plan
from gptrs.ir.program import DerivedParam, Program
from gptrs.ir.sizes import evaluate
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array

Arguments: TypeAlias = Sequence[Array | Parameter]
Run: TypeAlias = Callable[[Arguments, Mapping[str, int]], tuple[Array, ...]]
_Key: TypeAlias = tuple[str | int, ...]  # the definition's text and the ids of its sources


class _Definition:
    """Computes a derived parameter. It does not keep the model alive."""

    def __init__(self, definition: Program, sources: Sequence[Parameter]) -> None:
        self._definition = definition
        self._sources = [weakref.ref(source) for source in sources]

    def load(self, name: str) -> Array:
        sources = [cast("Parameter", source()) for source in self._sources]
        (array,) = evaluate(self._definition, [source.numpy() for source in sources])
        for source in sources:
            source.release()  # mostly nobody else reads it, and who does can load it again
        return array


class DerivedParameters:
    """Derived parameters by definition and sources: equal layers of one model compute theirs, two
    programs over one model share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[_Key, tuple[Parameter, list[weakref.ref[Parameter]]]] = {}

    def get(self, param: DerivedParam, sources: Sequence[Parameter]) -> Parameter:
        """The parameter that ``param`` stands for when its sources are ``sources``."""
        key: _Key = (str(param.definition), *map(id, sources))
        with self._lock:
            found = self._known.get(key)
            if found is None:
                definition = _Definition(param.definition, sources)
                made = Parameter.from_source(param.name, param.type, definition)

                def drop(_: object) -> None:
                    self._known.pop(key, None)

                found = made, [weakref.ref(source, drop) for source in sources]
                self._known[key] = found
            return found[0]


_DERIVED = DerivedParameters()


def run_of(program: Program, plan: Plan) -> Run:
    """Runs ``plan``, that of ``program``, on arguments for all parameters but the derived ones."""
    derived = [param for param in program.params if isinstance(param, DerivedParam)]
    if not derived:
        return plan.run
    place = {param: number for number, param in enumerate(program.params)}
    places = [(param, [place[source] for source in param.sources]) for param in derived]

    def run(arguments: Arguments, sizes: Mapping[str, int]) -> tuple[Array, ...]:
        given: list[Any] = list(arguments)
        for param, numbers in places:
            given.append(_DERIVED.get(param, [given[number] for number in numbers]))
        return plan.run(given, sizes)

    return run
