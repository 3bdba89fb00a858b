"""The calls behind custom calls of a program, each matched once for all equal definitions.

The layers of a model make the same calls, of other weights: their definitions are equal but for the
names of parameters. `CallMatcher` finds the call for the first of them, in terms of the values of
that definition; the others take it over, with their own operands in the same places.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from gptrs.backends.faer.calls.base import Call
from gptrs.backends.faer.custom_calls import call_of
from gptrs.ir.program import Instruction, Operand, Program, Value, key_of
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property


@dataclass(frozen=True, eq=False)
class MatchedCall:
    """A call, in terms of the values of a definition that several custom calls may share."""

    call: Call
    params: tuple[Value, ...]
    """Of the definition."""

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        """The buffers of the call: the parameters of the definition, then the results."""
        return (*self.params, *self.call.results)

    def among(self, instruction: Instruction) -> Mapping[Value, Value]:
        """The values of ``instruction``, a custom call of an equal definition, by `operands`."""
        arrays = (*instruction.values(), *instruction.results)
        return dict(zip(self.operands, arrays, strict=True))


class CallMatcher:
    """Gives the calls behind the custom calls of one program."""

    def __init__(self) -> None:
        self._found: dict[Hashable, MatchedCall] = {}

    def of(self, instruction: Instruction) -> MatchedCall:
        """The call behind a `custom_call` of this backend."""
        definition: Program = instruction.attrs["definition"]
        key = instruction.attrs["target"], definition_key(definition)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = MatchedCall(call_of(instruction), definition.params)
        return found


def definition_key(program: Program) -> Hashable:
    """A hashable key, equal for programs that compute the same of their parameters, whatever the
    names. Regions are compared by identity."""
    places: dict[Value, int] = {}

    def place(values: tuple[Value, ...]) -> tuple[Hashable, ...]:
        first = len(places)
        places.update({value: first + n for n, value in enumerate(values)})
        return tuple([value.type for value in values])

    def key(operand: Operand) -> Hashable:
        if isinstance(operand, Value):
            return Value, places[operand]
        return tuple(map(key, operand)) if isinstance(operand, tuple) else key_of(operand)

    params = place(program.params), tuple([p.role for p in program.params])
    body = [
        (i.op, tuple(map(key, i.operands)), i.attrs_key, place(i.results)) for i in program.body
    ]
    return params, tuple(body), tuple([places[result] for result in program.results])
