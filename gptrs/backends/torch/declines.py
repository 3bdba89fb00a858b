"""What a device declines: dtypes that it does not have."""

from __future__ import annotations

from collections.abc import Iterator

from gptrs.errors import DTypeError
from gptrs.ir.program import Instruction, Program

DECLINED: dict[str, frozenset[str]] = {"mps": frozenset({"f64", "cf64"})}
"""The dtypes that a device of a type does not have."""


def check_dtypes(program: Program, device_type: str, backend: str) -> None:
    """Raise `DTypeError`, with the user's line, for a dtype that the device does not have."""
    declined = DECLINED.get(device_type)
    if not declined:
        return
    for instruction in _instructions(program):
        for value in (*instruction.values(), *instruction.results):
            if (name := value.type.dtype.name) in declined:
                narrower = {"f64": "f32", "cf64": "cf32"}[name]
                error = DTypeError(
                    f"{instruction.op.name}: {backend} has no {name}", fix=f"cast to {narrower}"
                )
                error.where = instruction.where
                raise error


def _instructions(program: Program) -> Iterator[Instruction]:
    for instruction in program.body:
        yield instruction
        for region in instruction.regions():
            yield from _instructions(region)
