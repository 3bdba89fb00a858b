"""Programs compiled as C: many in one file, called by ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs.backends.c_family.c11 import CProgram, preamble
from gptrs.ir.dims import size_at
from gptrs.ir.program import Value
from gptrs.ir.sizes import filled
from gptrs.ir.types import Array

FLAGS = (
    *("-std=c11", "-O0", "-march=native", "-ffp-contract=off"),
    *("-Wall", "-Werror", "-Wno-unused"),
)
COMPILER = shutil.which("gcc")
_BEYOND = 256
"""Bytes after an arena, which are not to be written."""

needs_gcc = pytest.mark.skipif(COMPILER is None, reason="there is no gcc here")


def compiled(programs: Sequence[CProgram], directory: Path, flags: Sequence[str] = FLAGS) -> Any:
    """A library with the functions of all programs, compiled as one file."""
    assert COMPILER is not None
    source, library = directory / "programs.c", directory / "programs.so"
    functions = [p.functions() for p in programs]
    source.write_text("\n".join([preamble(), *functions]))
    command = [COMPILER, *flags, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return ctypes.CDLL(str(library))


def run(
    library: Any,
    made: CProgram,
    arguments: Sequence[Array],
    sizes: Mapping[str, int],
) -> tuple[Array, ...] | str:
    """The results of a call, or the message of its status. Donated arguments are copied."""
    program = made.assignment.schedule.program
    given = np.array([sizes[s] for s in made.symbols], np.int64)
    inputs = [np.array(a, order="C", copy=True) for a in arguments]
    by_param = dict(zip(program.params, inputs, strict=True))
    weights = aligned(made.weights_bytes)
    for weight in made.weights:
        array = by_param.get(weight.value)  # pyright: ignore[reportArgumentType, reportCallIssue]
        if array is None:
            array = weight.constant
        assert array is not None
        data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        weights[weight.offset : weight.offset + weight.bytes] = data
    arena_bytes = getattr(library, f"{made.name}_arena_bytes")
    arena_bytes.restype, arena_bytes.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
    size = arena_bytes(given.ctypes.data)
    arena = aligned(size + _BEYOND)
    arena[:] = 0xAB
    outputs = {n: np.empty(shape_of(v, sizes), v.type.dtype.numpy) for n, v in made.outputs}
    pointers = [given, weights, arena, *(inputs[n] for n, _ in made.inputs), *outputs.values()]
    status = getattr(library, f"{made.name}_run")(
        *(ctypes.c_void_p(a.ctypes.data) for a in pointers)
    )
    assert (arena[size:] == 0xAB).all()
    if status:
        message = getattr(library, f"{made.name}_message")
        message.restype = ctypes.c_char_p
        return message(status).decode()
    places = enumerate(made.assignment.results)
    return tuple(outputs[n] if n in outputs else inputs[place.number] for n, place in places)


def shape_of(value: Value, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(size_at(n, sizes) for n in filled(value.type, sizes).shape)


def aligned(size: int) -> Array:
    """Bytes at an address that is a multiple of 64."""
    room = np.zeros(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size]
