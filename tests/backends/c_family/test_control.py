"""Branches and loops as C: compiled, and the bits of the reference."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.c_family.c11 import CProgram
from gptrs.backends.c_family.c_target import CTarget, c_program
from gptrs.backends.reference import ReferencePlan
from gptrs.errors import ArgumentError
from gptrs.ir.program import Program
from gptrs.ir.types import Array
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.support.c_programs import compiled, needs_gcc, run


class _Row(NamedTuple):
    function: Callable[..., Any]
    types: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...] = ({},)


def _counted(x: Any, n: Any) -> Any:
    return ptir.while_loop(
        lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2 + s[2], s[2]), (0, x, x)
    )


def _flagged(x: Any, n: Any) -> Any:
    def body(state: Any) -> Any:
        _, at = state
        return at + 1 < n, at + 1

    return ptir.while_loop(lambda s: s[0], body, (ptir.tensor(True), ptir.tensor(0))), x


def _sums(xs: Any) -> Any:
    return ptir.scan(lambda s, x: (s + x, (s, x.sum())), ptir.zeros((3,)), xs)


def _reversed(xs: Any) -> Any:
    return ptir.scan(lambda s, x: (s * 0.5 + x, s), xs[0], xs, reverse=True)


def _no_state(xs: Any) -> Any:
    return ptir.scan(lambda s, x: (s, x * 2), (), xs)


def _length(x: Any) -> Any:
    return ptir.scan(lambda s, _: (s + 1, None), x, length=4)


def _swapped(xs: Any) -> Any:
    return ptir.scan(lambda s, x: ((s[1], s[0], s[2] + x), s), (xs[0], xs[1], xs[2]), xs)


def _cache(xs: Any) -> Any:
    def body(state: Any, x: Any) -> Any:
        at, kept = state
        kept = ptir.dynamic_update_slice(kept, x[None] + kept[:1], (at, 0))
        return (at + 1, kept), kept.sum(axis=0)

    return ptir.scan(body, (ptir.tensor(0), xs * 2), xs)


def _crossed(xs: Any) -> Any:
    """Each array is updated in place, in the part of the other; another has a new array."""

    def body(state: Any, x: Any) -> Any:
        at, a, b, c = state
        a = ptir.dynamic_update_slice(a, x[None], (at, 0))
        b = ptir.dynamic_update_slice(b, -x[None], (at, 0))
        return (at + 1, b, c * 2, a), None

    return ptir.scan(body, (ptir.tensor(0), xs * 0, xs * 2, xs * 3), xs)


def _given_away(xs: Any) -> Any:
    """An output is written where the state was."""

    def body(kept: Any, x: Any) -> Any:
        return kept * 1.5, ptir.dynamic_update_slice(kept, x[None], (0, 0))

    return ptir.scan(body, xs + 1, xs)


def _constants(xs: Any) -> Any:
    table = np.arange(3, dtype=np.float32)
    step = ptir.scan(lambda s, x: (s + x * ptir.tensor(table), ptir.tensor(table)), xs[0] * 0, xs)
    return step, ptir.cond(
        xs.sum() > 0, lambda: ptir.tensor(table), lambda: ptir.tensor(table[::-1].copy())
    )


def _branch(x: Any, flag: Any) -> Any:
    return ptir.cond(flag, lambda a: (a, a @ a.T), lambda a: (-a, (a * a) @ a.T), x)


def _nested(xs: Any, n: Any) -> Any:
    def body(state: Any, x: Any) -> Any:
        inner, rows = ptir.scan(lambda s, y: (s + y * x, s.sum()), state, xs)
        halved = ptir.while_loop(lambda a: ptir.reduce_max(ptir.abs(a)) > 1, lambda a: a / 2, inner)
        return ptir.cond(n > 2, lambda a: a * 2, lambda a: a + rows.sum(), halved), rows

    return ptir.scan(body, xs[0], xs)


SIZES = tuple({"S": n} for n in (1, 2, 5))
ROWS: dict[str, _Row] = {
    "while": _Row(_counted, ("f32[3]", "si64[]")),
    "while with a flag": _Row(_flagged, ("f32[3]", "si64[]")),
    "scan": _Row(_sums, ("f32[?S,3]",), ({"S": 0}, *SIZES)),
    "reverse scan": _Row(_reversed, ("f32[?S,3]",), SIZES),
    "scan without state": _Row(_no_state, ("f32[?S,3]",), SIZES),
    "scan without arrays": _Row(_length, ("si32[2]",)),
    "swapped state": _Row(_swapped, ("f32[4,3]",)),
    "a cache": _Row(_cache, ("f32[?S,3]",), SIZES),
    "crossed updates": _Row(_crossed, ("f32[5,3]",)),
    "output in the place of state": _Row(_given_away, ("f32[?S,3]",), SIZES),
    "constants of regions": _Row(_constants, ("f32[4,3]",)),
    "cond": _Row(_branch, ("f32[?S,3]", "i1[]"), SIZES),
    "nested": _Row(_nested, ("f64[?S,3]", "si64[]"), SIZES[:2]),
}


def _recorded(row: _Row) -> Program:
    types = [ptir.Type.parse(text) for text in row.types]
    return ptir.jit(row.function).lower(*types).program


def _in_c(name: str, program: Program) -> CProgram:
    return c_program(name, lower(program, Context(CTarget(), precise=True)))


def _arguments(program: Program, sizes: Mapping[str, int], seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    for param in program.params:
        shape = tuple(
            sizes[str(n).lstrip("?")] if not isinstance(n, int) else n for n in param.type.shape
        )
        low = 0 if param.type.rank == 0 else -2
        found.append(rng.integers(low, 4, shape).astype(param.type.dtype.numpy))
    return found


@needs_gcc
def test_as_the_reference(tmp_path: Path) -> None:
    programs = {name: _recorded(row) for name, row in ROWS.items()}
    made = {name: _in_c(f"c{n}", program) for n, (name, program) in enumerate(programs.items())}
    library = compiled([*made.values()], tmp_path)
    for name, row in ROWS.items():
        for sizes in row.sizes:
            for seed in range(3):
                given = _arguments(programs[name], sizes, seed)
                expected = ReferencePlan(programs[name]).run(given, sizes)
                found = run(library, made[name], given, sizes)
                assert not isinstance(found, str), (name, found)
                for array, right in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(array, right, err_msg=f"{name} {sizes}")


@needs_gcc
def test_a_failure_in_a_region(tmp_path: Path) -> None:
    def last(x: Any, at: Any, flag: Any) -> Any:
        taken = ptir.while_loop(lambda n: n < 3, lambda n: ptir.take(x, n), at)
        return ptir.cond(flag, lambda n: ptir.take(x, n + 7), lambda n: n, taken)

    program = _recorded(_Row(last, ("si64[3]", "si64[]", "i1[]")))
    made = _in_c("last", program)
    library = compiled([made], tmp_path)

    def called(x: list[int], flag: bool) -> Any:
        return run(library, made, [np.array(x), np.array(0), np.array(flag)], {})

    assert called([1, 2, 5], False)[0].tolist() == 5
    for given in (([1, -7, 0], False), ([1, 2, 5], True)):
        assert "take: an element has no result\n  at " in called(*given)


def test_what_a_region_has_no_form_of() -> None:
    def function(x: Any) -> Any:
        return ptir.cond(x.sum() > 0, lambda a: ptir.linalg.inv(a), lambda a: a, x)

    with pytest.raises(
        ArgumentError, match=r"there is none for inv of f32\[2,2\] at .*test_control"
    ):
        _in_c("f", _recorded(_Row(function, ("f32[2,2]",))))
