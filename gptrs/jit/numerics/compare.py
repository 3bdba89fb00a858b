"""``ptir.compare``: a function run in two ways and compared, instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MethodType
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from gptrs import tree
from gptrs.debug.numeric_diff.deviation import Deviation
from gptrs.debug.numeric_diff.diff import Diff, Row
from gptrs.errors import ArgumentError, ShapeError, user_location
from gptrs.ir.effect_tape import Tape, recorded, replayed
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import Array, Type
from gptrs.jit.function import JitFunction
from gptrs.jit.numerics.agreement import measured_bounds, plain_bounds
from gptrs.jit.numerics.first_deviation import deviating_pass, first_deviation
from gptrs.jit.numerics.rows import instruction_rows, result_rows
from gptrs.jit.numerics.traced_call import TracedCall, with_all_results
from gptrs.jit.numerics.ways import Way, eager_way, way_named
from gptrs.jit.options import Options

WayName: TypeAlias = (
    Literal["jit", "unoptimised", "precise", "reference", "eager", "float64", "torch"]
    | Callable[..., Any]
)
AnyFunction: TypeAlias = JitFunction[..., Any]
_WITHIN = 1e-4  # at order 10, as `gptrs trace` has it


def compare(
    function: Any,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    a: WayName = "jit",
    b: WayName = "eager",
) -> Diff:
    """Run ``function(*args, **kwargs)`` in the ways ``a`` and ``b``, and find the first instruction
    that differs by more than its op may. Print the result.

    ``function`` is a decorated or a plain function, a module, or a loaded model; ``args`` is a
    tuple, anything else is the only argument. The ways are

    - ``"jit"``: all passes and the backend of the function; ``"unoptimised"``: its kernels without
      passes; ``"precise"``: as with ``precise=True``; ``"reference"``: all passes, and the
      reference backend;
    - ``"eager"``: each instruction of the traced program by its NumPy meaning, which are the bits
      of eager mode; ``"float64"``: the same with all floats in f64; ``"torch"``: the same through
      torch for the ops that it has;
    - a Python function that takes the same arguments with NumPy arrays: then results alone are
      compared.

    Each instruction has two errors. Its own: one way computes it from the operands that the other
    one has, so that what went wrong before does not count; that is judged by the bound of its op
    (docs/numerics.md). The total: what both ways give there. Results of the whole function are
    those of the program as it runs, where fused loops leave intermediate values out; rounding
    that accumulated is measured against f64. Effects happen once. Raises `ArgumentError` for an
    unknown way, and what the function raises.
    """
    try:
        given = cast("tuple[Any, ...]", args) if isinstance(args, tuple) else (args,)
        jitted, given = _jitted(function, given)
        call = jitted.traced_call(*given, **(kwargs or {}))
        call = call.kept()
        if callable(a) or callable(b):
            return _of_results(call, (a, b), given, kwargs or {})
        return compared(call, way_named(a, call), way_named(b, call))
    except ArgumentError as error:
        error.where = error.where or user_location()
        raise


def compared(call: TracedCall, a: Way, b: Way) -> Diff:
    """The rows of both ways, and the cause where they differ."""
    tape = Tape()
    if call.program.has_effects:
        with recorded(tape):
            eager_way().run(call.program, call.given, call.sizes)
    rows = tuple(instruction_rows(call, a, b, tape))
    sides = [_whole(call, way, tape) for way in (a, b)]
    results = _judged(call, sides, tape)
    found = Diff(call.name, a.name, b.name, rows, results)
    return found if found.agrees else replace(found, cause=cause_of(call, found, tape))


def cause_of(call: TracedCall, found: Diff, tape: Tape) -> Deviation | None:
    """The pass, or the instruction after all passes, that makes the backend of ``call`` differ."""
    first = found.first
    if "jit" not in (found.a, found.b) or first is None:
        return None
    if first.own is None:  # the whole differs, and no instruction does by itself
        return first_deviation(call, _WITHIN, tape)
    live = call.live()
    every = replace(live, program=with_all_results(live.program))
    return deviating_pass(every, _WITHIN, tape)


def _whole(call: TracedCall, way: Way, tape: Tape) -> tuple[Array, ...]:
    with replayed(tape):
        return way.run(call.program, call.given, call.sizes)


def _judged(call: TracedCall, sides: Sequence[Sequence[Array]], tape: Tape) -> tuple[Row, ...]:
    """Rows of the results, judged by rounding as it is measured where plain bounds do not do."""
    rows = result_rows(sides[0], sides[1], plain_bounds(sides[1]))
    if all(row.agrees for row in rows):
        return rows
    with replayed(tape):
        meaning = eager_way().run(call.program, call.given, call.sizes)
    return result_rows(sides[0], sides[1], measured_bounds(call, meaning, tape))


def _jitted(function: Any, args: tuple[Any, ...]) -> tuple[AnyFunction, tuple[Any, ...]]:
    """The decorated function to trace, and its arguments."""

    if _has(function, "is_loaded_model"):
        function = function.module
    if _has(function, "is_module"):
        call: Any = type(function).__call__
        function, args = MethodType(call, function), args
    if isinstance(function, MethodType):
        method: Any = function
        function, args = method.__func__, (method.__self__, *args)
    if isinstance(function, JitFunction):
        return cast("AnyFunction", function), args
    if not callable(function):
        raise ArgumentError(
            f"function is a {type(function).__name__}, expected a function, a module or a model"
        )
    return JitFunction(function, Options(), None), args


def _has(thing: object, trait: str) -> bool:
    return getattr(type(thing), trait, False)


def _of_results(
    call: TracedCall, ways: tuple[Any, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Diff:
    """Where a way is a Python function."""
    sides: list[tuple[Array, ...]] = []
    names: list[str] = []
    for way in ways:
        if callable(way):
            names.append(getattr(way, "__qualname__", type(way).__name__))
            sides.append(_called(way, args, kwargs))
        else:
            names.append(str(way))
            sides.append(way_named(way, call).run(call.program, call.given, call.sizes))
    types = [[Type.of(array) for array in side] for side in sides]
    if [t.shape for t in types[0]] != [t.shape for t in types[1]]:
        raise ShapeError(
            f"{names[0]} gives {', '.join(map(str, types[0]))}, {names[1]}"
            f" {', '.join(map(str, types[1]))}",
            fix="compare functions that return the same arrays",
        )
    program = way_named("eager", call).run(call.program, call.given, call.sizes)
    bounds = plain_bounds(program)
    if any(map(callable, ways)) and not all(map(callable, ways)):
        bounds = measured_bounds(call, program, Tape())
    return Diff(call.name, names[0], names[1], (), result_rows(sides[0], sides[1], bounds))


def _called(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Array, ...]:
    """The arrays that a Python function returns for NumPy arrays."""

    def plain(value: Any) -> Any:
        return np.array(value.numpy()) if isinstance(value, Tensor) else value

    leaves, structure = tree.flatten((args, dict(kwargs)), is_leaf=lambda x: isinstance(x, Tensor))
    given: Any = tree.unflatten(structure, [plain(leaf) for leaf in leaves])
    returned = function(*given[0], **given[1])
    found, _ = tree.flatten(returned, is_leaf=lambda x: as_array(x) is not None)
    return tuple(np.asarray(array) for leaf in found if (array := as_array(leaf)) is not None)
