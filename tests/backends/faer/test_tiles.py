"""Loops over tiles of rows: which regions have them, and that rows keep their bits in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import render as rendering
from gptrs.backends.fusion import fuse
from gptrs.backends.machine import MACHINE
from gptrs.backends.regions import Region
from gptrs.backends.vectorization import prefers_tiles
from gptrs.ir.dims import dim
from gptrs.ir.program import Program
from gptrs.ir.types import Array, Type, as_dtype
from gptrs.kernels.compiler import isa
from gptrs.kernels.rowwise.reduce import LANES, PART, TILE
from tests.backends.faer.test_render import record, run_regions

B, C, S = dim("B"), dim("C"), dim("S")
ROWS = (1, 5, TILE - 1, TILE, TILE + 1, 2 * TILE + 3, 9 * TILE + 3)
LENGTHS = (1, 2, LANES - 1, LANES, LANES + 1, PART, PART + 1, 1100)


def of_both(
    program: Program, arrays: list[Array], sizes: dict[str, int], patch: pytest.MonkeyPatch
) -> tuple[Array, Array]:
    """The result of a program with tiles in all its regions, and with none."""
    found: list[Array] = []
    for tiles in (True, False):
        patch.setattr(rendering, "prefers_tiles", _with_rows if tiles else _never)
        (result,) = run_regions(program, arrays, sizes)
        found.append(result)
    return found[0], found[1]


def _with_rows(region: Region) -> bool:
    return bool(region.rows)


def _never(region: Region) -> bool:
    return False


def assert_same(found: Array, expected: Array) -> None:
    """Equal bits; of a NaN, that it is one."""
    if found.dtype.kind in "fV":
        nan = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(found), nan)
        found, expected = found[~nan], expected[~nan]
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))


def elements(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Elements that a sum rounds, with zeros of both signs, infinities and NaNs in some columns."""
    rng, kind = np.random.default_rng(seed), as_dtype(dtype)
    if kind.is_bool:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if not kind.is_float:
        return rng.integers(-100, 100, shape).astype(kind.numpy)
    x = rng.standard_normal(shape).astype(kind.numpy)
    flat: Any = x.reshape(-1)
    for place, value in enumerate([np.nan, np.inf, -np.inf, 0.0, -0.0]):
        flat[place * 7 :: 401] = value
    x[..., -1] = -0.0
    return x


REDUCTIONS = [
    *((ptir.reduce_sum, dtype) for dtype in ("f32", "f64", "f16", "bf16", "si32", "ui8", "si64")),
    *((ptir.reduce_prod, dtype) for dtype in ("f32", "f64", "si32")),
    *((ptir.reduce_max, dtype) for dtype in ("f32", "f64", "bf16", "si8", "ui64")),
    *((ptir.reduce_min, dtype) for dtype in ("f32", "f64", "si16")),
    *((ptir.reduce_any, "i1"), (ptir.reduce_all, "i1")),
]


@pytest.mark.parametrize(("op", "dtype"), REDUCTIONS, ids=lambda given: str(given))
def test_a_row_has_the_same_bits_in_a_tile(
    op: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = record(op, Type((S, C), as_dtype(dtype)), axes=(0,))
    for rows in ROWS:
        for length in LENGTHS if rows == TILE + 1 else (3, PART + 40):
            x = elements(dtype, (length, rows), seed=length)
            sizes = {"S": length, "C": rows}
            tiled, alone = of_both(program, [x], sizes, monkeypatch)
            assert_same(tiled, alone)


@pytest.mark.parametrize("rows", [4, 7, 10, 32, 33])
@pytest.mark.parametrize("op", [ptir.reduce_sum, ptir.reduce_max])
def test_few_rows_are_written_out(op: Any, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is in the text, up to 32; the bits are the same."""
    for shape, axis in (((PART + 41, rows), 0), ((3, 70, rows), 1), ((2, 3, 70, rows), 2)):
        program = record(op, Type(shape, ptir.f32), axes=(axis,))
        tiled, alone = of_both(program, [elements("f32", shape)], {}, monkeypatch)
        assert_same(tiled, alone)
        monkeypatch.setattr(rendering, "prefers_tiles", _with_rows)
        (region,) = fuse(program).regions
        assert (f"live = {rows}\n" in rendering.render(region).body) is (rows <= 32)
        assert f"live = {rows}\n" not in rendering.render(region, shared=True).body


@pytest.mark.parametrize("level", [level.name for level in isa.host_levels()])
def test_every_level_gives_the_same_bits(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_ISA", level)
    program = record(ptir.reduce_sum, Type((S, C), ptir.f32), axes=(0,))
    x = elements("f32", (PART + 70, TILE + 9))
    sizes = {"S": x.shape[0], "C": x.shape[1]}
    tiled, alone = of_both(program, [x], sizes, monkeypatch)
    assert_same(tiled, alone)


def softmax(x: Any) -> Any:
    return ptir.softmax(x, axis=0)


def normalized(x: Any) -> Any:
    centred = x - ptir.reduce_sum(x, axes=(1,), keepdims=True) / 7.0
    spread = ptir.reduce_sum(centred * centred, axes=(1,), keepdims=True)
    return centred * ptir.rsqrt(spread + 1e-5)


def pairs(x: Any, y: Any) -> Any:
    d = ptir.reshape(x, shape=(C, 1, 5)) - ptir.reshape(y, shape=(1, S, 5))
    return ptir.reduce_sum(d * d, axes=(2,))


def any_large(x: Any) -> Any:
    large = ptir.greater(x, 1.0)
    return ptir.select(ptir.reduce_any(large, axes=(0,), keepdims=True), x, 0.0)


def outer_and_inner(x: Any) -> Any:
    return ptir.reduce_sum(x, axes=(0, 2))


def product_of_both(x: Any) -> Any:
    return ptir.reduce_prod(x, axes=(0, 2))


def leading(x: Any) -> Any:
    return ptir.reduce_sum(x * x, axes=(0, 1))


def doubled(x: Any) -> Any:
    return ptir.reduce_sum(x * 2.0, axes=(0,))


def weighted(x: Any, w: Any) -> Any:
    return ptir.reduce_sum(x * w, axes=(0,))


def exponentials(x: Any) -> Any:
    return ptir.reduce_sum(ptir.exp(x), axes=(0,))


def placed(x: Any) -> Any:
    places = ptir.iota(shape=(S, C), dtype=ptir.f32, axis=1)
    return ptir.reduce_max(x + places, axes=(0,))


def log_softmax(x: Any) -> Any:
    return ptir.log_softmax(x, axis=1)


def gated(x: Any, y: Any) -> Any:
    kept = ptir.cast(x, dtype=ptir.f32) * y
    return kept - ptir.reduce_max(kept, axes=(1,), keepdims=True)


F32 = ptir.f32
WHOLE: dict[str, tuple[Any, tuple[Type, ...]]] = {
    "softmax over columns": (softmax, (Type((S, C), F32),)),
    "norm over a middle axis": (normalized, (Type((B, S, C), F32),)),
    "outer and inner axes": (outer_and_inner, (Type((B, S, C), F32),)),
    "a product over outer and inner axes": (product_of_both, (Type((B, S, C), F32),)),
    "leading axes": (leading, (Type((B, S, C), F32),)),
    "pairwise distances": (pairs, (Type((C, 5), F32), Type((S, 5), F32))),
    "a truth value a row": (any_large, (Type((S, C), F32),)),
    "weighted columns": (weighted, (Type((S, C), F32), Type((S, 1), F32))),
    "an expensive sum over columns": (exponentials, (Type((S, C), F32),)),
    "bf16": (doubled, (Type((S, C), ptir.bf16),)),
    "short rows": (log_softmax, (Type((C, 10), F32),)),
    "short rows of f64": (log_softmax, (Type((C, 7), ptir.f64),)),
    "short rows of two dtypes": (gated, (Type((C, 32), ptir.f16), Type((C, 32), F32))),
    "positions": (placed, (Type((S, C), F32),)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_functions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the bits of rows one by one, at sizes on both sides of a tile and of a block."""
    fn, types = WHOLE[name]
    program = record(fn, *types)
    for b, s, c in [(2, 3, 5), (1, 1, 1), (3, 600, TILE + 1), (2, 40, 9 * TILE)]:
        sizes = {"B": b, "S": s, "C": c}
        arrays = [
            elements(t.dtype.name, tuple(n if isinstance(n, int) else n.at(sizes) for n in t.shape))
            for t in types
        ]
        tiled, alone = of_both(program, arrays, sizes, monkeypatch)
        assert_same(tiled, alone)


CHOSEN: dict[str, tuple[Type, tuple[int, ...], bool]] = {
    "columns": (Type((1000, 1000), F32), (0,), True),
    "rows": (Type((1000, 1000), F32), (1,), False),
    "short rows": (Type((100000, 5), F32), (1,), False),
    "rows of a vector": (Type((100000, 16), F32), (1,), False),
    "one column": (Type((100000, 1), F32), (0,), False),
    "three columns": (Type((100000, 3), F32), (0,), False),
    "four columns": (Type((100000, 4), F32), (0,), True),
    "a middle axis": (Type((10, 100, 100), F32), (1,), True),
    "unknown columns": (Type((S, C), F32), (0,), True),
    "everything": (Type((100, 100), F32), (0, 1), False),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_axis_of_vectors(name: str) -> None:
    type, axes, tiles = CHOSEN[name]
    (region,) = fuse(record(ptir.reduce_sum, type, axes=axes)).regions
    assert prefers_tiles(region) is tiles


def test_short_rows_with_arithmetic_are_tiles() -> None:
    """Their sums would begin and end in scratch memory, row by row."""

    def squares(x: Any) -> Any:
        return ptir.reduce_sum(x * x, axes=(1,))

    (region,) = fuse(record(squares, Type((100000, 5), F32))).regions
    assert prefers_tiles(region)


@pytest.mark.parametrize("op", [ptir.reduce_sum, ptir.reduce_max])
def test_short_rows_of_a_large_array_are_read_in_order(op: Any) -> None:
    @ptir.jit
    def of_middle(x: ptir.Tensor) -> ptir.Tensor:
        return op(x, axis=1)

    x = elements("f32", (140, 127, 256))
    assert x.nbytes > MACHINE.l3_bytes
    whole, part = (" ".join(of_middle.explain(a).sources.values()) for a in (x, x[:2]))
    assert "group0[t]" in whole
    assert "group0[t]" not in part
    expected = np.concatenate([of_middle(x[at : at + 2]).numpy() for at in range(0, len(x), 2)])
    assert_same(of_middle(x).numpy(), expected)
