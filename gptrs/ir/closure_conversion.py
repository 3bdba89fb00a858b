"""Closure conversion: the free variables of a region become parameters of it.

A region (a branch, a loop body) is a closed program. `RegionRecorder` traces a function that may
read traced values of the enclosing functions and parameters of models. `close` gives all regions of
one instruction the same list of captured values, which are operands of the instruction. Called by
`gptrs.ir.control`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.ir.interpreters import Recorder
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Operand, Param, Program, Role, Value
from gptrs.ir.tensor import Tensor


class RegionRecorder(Recorder):
    """Traces a function that is called while ``enclosing`` traces its own.

    Each value of an enclosing function, and each parameter of a model, becomes one parameter of the
    region, however often it is read; other arrays become constants in the region. Without an
    enclosing recorder, when only the result types are needed, every array from outside becomes a
    parameter.
    """

    def __init__(self, name: str, enclosing: Recorder | None) -> None:
        on_parameter = None if enclosing is None else enclosing.on_parameter
        on_constant = None if enclosing is None else enclosing.on_constant
        super().__init__(name, on_parameter=on_parameter, on_constant=on_constant)
        self.enclosing = enclosing
        self.captured: dict[int, Tensor] = {}  # by id of the value or the parameter of a model
        self._inside: dict[int, Value] = {}  # the region's parameter for each of these

    @property
    def given(self) -> tuple[Param, ...]:
        """The parameters that were declared; captured values excluded."""
        captured = set(self._inside.values())
        return tuple([param for param in self.params if param not in captured])

    def lift(self, operand: Any) -> Operand:
        if not isinstance(operand, Tensor) or not self._is_outside(operand):
            return super().lift(operand)
        key = _key(operand)
        if key not in self._inside:
            self.captured[key] = operand
            role: Role = "parameter" if is_parameter(operand) else "input"
            made = self.input(operand.type, _name(operand), role=role)
            assert made.value is not None
            self._inside[key] = made.value
        return self._inside[key]

    def _is_outside(self, tensor: Tensor) -> bool:
        if not tensor.is_traced:
            takes_parameters = isinstance(tensor, Parameter) and self.on_parameter is not None
            outer = self.enclosing
            if outer is None or takes_parameters:
                return True
            return isinstance(outer, RegionRecorder) and outer._is_outside(tensor)
        recorder: object = self.enclosing
        while recorder is not tensor.recorder and isinstance(recorder, RegionRecorder):
            recorder = recorder.enclosing
        return recorder is not None and recorder is tensor.recorder


def _key(tensor: Tensor) -> int:
    """The identity of a captured tensor: two handles of one traced value have one key."""
    return id(tensor if tensor.value is None else tensor.value)


def is_parameter(tensor: Tensor) -> bool:
    """Whether ``tensor`` is a parameter of a model, or the slot of one."""
    value = tensor.value
    if isinstance(value, Param):
        return value.role == "parameter"
    return isinstance(tensor, Parameter)


def _name(tensor: Tensor) -> str:
    named = tensor.value if isinstance(tensor.value, Param) else tensor
    return named.name if isinstance(named, Param | Parameter) else "captured"


def close(
    regions: Sequence[tuple[RegionRecorder, Sequence[Tensor]]],
) -> tuple[list[Program], list[Tensor]]:
    """The programs of ``regions``, each given with its results, and the tensors captured by any of
    them.

    The parameters of each program are its declared ones, then one for each captured tensor.
    """
    results = [[recorder.lift(result) for result in returned] for recorder, returned in regions]
    captured = {key: t for recorder, _ in regions for key, t in recorder.captured.items()}
    programs: list[Program] = []
    for (recorder, _), values in zip(regions, results, strict=True):
        read = [recorder.lift(tensor) for tensor in captured.values()]
        params = (*recorder.given, *[value for value in read if isinstance(value, Param)])
        returned = tuple([value for value in values if isinstance(value, Value)])
        programs.append(Program(recorder.name, params, tuple(recorder.body), returned))
    return programs, list(captured.values())
