"""Programs as C: a directory with a source file, its header, the weights and a Makefile.

    NAME.c         kernels and the function that runs them in order
    NAME.h         what callers see
    NAME.weights   parameters and constants, at the places that NAME.c knows
    main.c         of a language model: greedy tokens after token ids
    Makefile       compiles NAME.o, or the program NAME where there is a main.c

Nothing of it needs Python. The weights are little-endian, to be mapped into memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gptrs.backends.c_family.c11 import CProgram
from gptrs.backends.c_family.c_target import CTarget, c_program
from gptrs.errors import ArgumentError
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import DerivedParam, Param, Program, Value
from gptrs.ir.sizes import evaluate
from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower

_MAKEFILE = """CC = gcc
CFLAGS = -std=c11 -O3 -march=native -ffp-contract=off
OPENMP = -fopenmp

{target}
{name}.o: {name}.c {name}.h
	$(CC) $(CFLAGS) $(OPENMP) -c -o $@ {name}.c
"""
_MAIN = """{name}: main.c {name}.o
	$(CC) $(CFLAGS) $(OPENMP) -o $@ main.c {name}.o -lm
"""


@dataclass(frozen=True)
class CFiles:
    """What was written."""

    directory: Path
    program: CProgram
    weights_bytes: int


def program_in_c(name: str, traced: Program) -> CProgram:
    """The C text of a traced program. Raises `ArgumentError` naming what has no C form."""
    return c_program(name, lower(traced, Context(CTarget())))


def write_c(
    directory: Path,
    made: CProgram,
    parameters: Sequence[Parameter],
    *,
    main: str | None = None,
    force: bool = False,
) -> CFiles:
    """Write a program, whose traced form takes ``parameters`` after its arguments.

    Raises `ArgumentError` where there is something already, unless ``force`` is given.
    """
    if directory.exists() and not force:
        raise ArgumentError(
            f"{directory} exists",
            fix="choose another place, or overwrite what is there: force=True, --force",
        )
    name = made.name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.h").write_text(made.header())
    (directory / f"{name}.c").write_text(made.source())
    target = _MAIN.format(name=name) if main is not None else ""
    (directory / "Makefile").write_text(_MAKEFILE.format(name=name, target=target))
    if main is not None:
        (directory / "main.c").write_text(main)
    with (directory / f"{name}.weights").open("wb") as file:
        _write_weights(file, made, parameters)
    return CFiles(directory, made, made.weights_bytes)


def _write_weights(file: BinaryIO, made: CProgram, parameters: Sequence[Parameter]) -> None:
    """The arrays of the weights, one after the other at their places."""
    program = made.assignment.schedule.program
    given = _given(program, parameters)
    for weight in made.weights:
        array = _array_of(weight.value, given) if weight.constant is None else weight.constant
        file.seek(weight.offset)
        file.write(np.ascontiguousarray(array).tobytes())
    file.truncate(made.weights_bytes)


def _given(program: Program, parameters: Sequence[Parameter]) -> Mapping[Param, Parameter]:
    """The parameters by the program's own, but for derived ones."""
    slots = [p for p in program.params if p.role == "parameter" and not isinstance(p, DerivedParam)]
    return dict(zip(slots, parameters, strict=True))


def _array_of(value: Value, given: Mapping[Param, Parameter]) -> Array:
    assert isinstance(value, Param)
    if isinstance(value, DerivedParam):
        sources = [given[source] for source in value.sources]
        (array,) = evaluate(value.definition, [source.numpy() for source in sources])
    else:
        sources = [given[value]]
        array = sources[0].numpy()
    for source in sources:
        source.release()  # it can be loaded again
    return array
