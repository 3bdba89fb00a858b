"""Runs kernels that users registered: Numba functions over arrays, as steps called from Python.

Input: a step's instruction and the arrays of its operands and results. The kernel fills the
results where they lie. One kernel with parallel loops runs at a time: not every threading layer of
Numba lets two threads launch loops at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from importlib import import_module
from typing import Any, cast

from gptrs.errors import PtirError
from gptrs.ir.dims import Dim
from gptrs.ir.implementation import Implementation
from gptrs.ir.implementations.kernels import parameters_of, python_function
from gptrs.ir.op import Op
from gptrs.ir.operands import map_operand
from gptrs.ir.program import Instruction, Value
from gptrs.ir.sizes import filled
from gptrs.ir.types import Array
from gptrs.kernels.compiler.codegen import KernelError
from gptrs.locks import late_import_that_logs, numba_threads

_LINES = 12  # of an error of Numba that a person reads

_compiled: dict[Callable[..., Any], Any] = {}


def run_kernel(
    instruction: Instruction,
    kernel: Implementation,
    look: Callable[[Value], Array],
    sizes: Mapping[str, int],
    threads: int,
) -> None:
    """Have ``kernel`` compute ``instruction`` on the arrays that ``look`` gives. Raises
    `KernelError` for whatever it raises."""
    function = _compiled_of(kernel.function)
    given = _arguments(instruction, look, sizes)
    arguments = [given[name] for name in parameters_of(kernel.function)]
    try:
        with _alone(function, threads):
            function(*arguments)
    except PtirError:
        raise
    except Exception as error:
        name = python_function(kernel.function).__name__
        text = "\n".join(str(error).strip().splitlines()[:_LINES])
        fix = f"call {name} on NumPy arrays to look for the reason"
        if "readonly array" in text:
            fix = "write into the result alone: operands are read-only"
        raised = KernelError(
            f"kernel {name} of {instruction.op.name} raised {type(error).__name__}: {text}", fix=fix
        )
        raised.where = instruction.where
        raise raised from error


def _compiled_of(function: Callable[..., Any]) -> Any:
    """A function that Numba compiles; a plain one is given to it once."""
    if hasattr(function, "py_func"):
        return function
    found = _compiled.get(function)
    if found is None:
        with late_import_that_logs():
            from numba import njit
        found = _compiled.setdefault(function, njit(error_model="numpy")(function))
    return found


def _arguments(
    instruction: Instruction, look: Callable[[Value], Array], sizes: Mapping[str, int]
) -> dict[str, Any]:
    """By name: operands as arrays to read and numbers, attributes, and the results."""
    op = cast("Op[..., Any]", instruction.op)

    def operand(thing: Any) -> Any:
        if isinstance(thing, Value):
            array = look(thing).view()
            array.flags.writeable = False
            return array
        return filled(thing, sizes) if isinstance(thing, Dim) else thing

    operands = [map_operand(operand, each) for each in instruction.operands]
    given = dict(zip(op.operand_names, operands, strict=True))
    given |= {name: filled(value, sizes) for name, value in instruction.attrs.items()}
    given |= {f"out{n}": look(result) for n, result in enumerate(instruction.results)}
    return {**given, "out": given["out0"]}


def _alone(function: Any, threads: int) -> Any:
    """What holds while ``function`` runs: for parallel loops, the threads of Numba."""
    if not getattr(function, "targetoptions", {}).get("parallel"):
        return nullcontext()
    return _Parallel(threads)


class _Parallel:
    """The threads of Numba for one caller, at most so many."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def __enter__(self) -> None:
        numba = import_module("numba")  # it is loaded: the function is its own
        numba_threads.acquire()
        self._before = numba.get_num_threads()
        numba.set_num_threads(max(1, min(self._threads, numba.config.NUMBA_NUM_THREADS)))

    def __exit__(self, *_: object) -> None:
        import_module("numba").set_num_threads(self._before)
        numba_threads.release()
