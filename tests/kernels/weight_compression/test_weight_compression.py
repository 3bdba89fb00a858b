"""Weight compression: it is lossless, and products have the bits of those of plain weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import Parameter, ptir
from gptrs.backends.faer.calls.forms import Panels
from gptrs.backends.faer.calls.packing import product_panels
from gptrs.backends.faer.packed_weights import pack
from gptrs.ir.types import Type, bf16, f32
from gptrs.kernels.compiler import isa
from gptrs.kernels.driver.step_table import Status
from gptrs.kernels.gemm import blocked, packed_gemv
from gptrs.kernels.gemm.blocked import Blocking
from gptrs.kernels.gemm.product import Product
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.kernels.rowwise.take import take_panels_kernel
from gptrs.kernels.weight_compression import decoder, format
from tests.kernels.gemm.test_matmul import Result, bits, call, kernel, matrix
from tests.kernels.gemm.test_matmul import pack as pack_plain

Array = NDArray[Any]

ODD = [np.nan, -np.inf, 3e38, -0.0, 0.0, 1e-45, -1e-39, 2.0**-60]
KINDS: list[WeightType] = ["f32", "bf16"]


@pytest.fixture
def level(level: isa.Isa) -> isa.Isa:
    """A vector level, which looks bytes up by an instruction of this CPU."""
    if not level.lookup or level in isa.host_levels():
        return level
    short = level.vector_bits == 128 and isa.current().lookup
    return replace(level, lookup="x86.ssse3.pshuf.b.128" if short else "")


@pytest.fixture
def codes(level: isa.Isa) -> isa.Isa:
    """A level that compresses weights. Of the others, `test_what_would_not_pay_stays_as_it_is`."""
    return (
        level if level.lookup else pytest.skip(f"{level.name} looks no bytes up: never compressed")
    )


def weight(weights: WeightType, shape: tuple[int, int], odd: int = 12) -> Array:
    """Normal numbers and ``odd`` others, also at both ends."""
    random = np.random.default_rng(7)
    made = random.standard_normal(shape).astype(np.float32) * np.float32(0.02)
    flat = made.reshape(-1)
    flat[random.permutation(flat.size)[:odd]] = np.resize(ODD, odd)
    flat[[0, -1]] = np.array(ODD[2:4]) if odd else flat[[0, -1]]
    return made if weights == "f32" else made.astype(ml_dtypes.bfloat16)


def container(level: isa.Isa, weights: WeightType, b: Array, transposed: bool = True) -> Array:
    """[K, N], compressed if that pays; also as it comes of [N, K]."""
    form = Panels(transposed, weights, *b.shape, compressed=True)
    return pack(b if transposed else np.ascontiguousarray(b.T), form, level)


def is_compressed(held: Array) -> bool:
    return bool(held[:8].view(np.int64)[0])


def wide_bits(b: Array) -> Array:
    return bits(b.astype(np.float32))


def unpacked(level: isa.Isa, weights: WeightType, held: Array, shape: tuple[int, int]) -> Array:
    """What the kernel that takes rows of an embedding finds, as [K, N]."""
    depth, columns = shape
    result, indices, status = np.zeros((columns, depth), np.float32), np.arange(columns), Status()
    words = [held, indices, result, status.address, 1, columns, depth, 0, depth, 8]
    call(kernel(take_panels_kernel, level, weights, True), words, (0, columns))
    return result.T


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("weights", KINDS)
def test_every_bit_comes_back(codes: isa.Isa, weights: WeightType, transposed: bool) -> None:
    for depth, columns in ((4, 512), (68, 129), (300, 3 * codes.tile_columns)):
        b = weight(weights, (depth, columns), odd=depth * columns // 1024)
        held = container(codes, weights, b, transposed)
        assert is_compressed(held)
        found = unpacked(codes, weights, held, b.shape)
        np.testing.assert_array_equal(bits(found), wide_bits(b))


@pytest.mark.slow
@pytest.mark.parametrize("weights", KINDS)
def test_products_have_the_bits_of_plain_ones(codes: isa.Isa, weights: WeightType) -> None:
    depth, columns = 68, 9 * codes.tile_columns - 5
    b = weight(weights, (depth, columns))
    held, product = container(codes, weights, b), Product(weights, compressed=True)
    plain = pack_plain(codes, b.astype(np.float32))
    most = 4 * decoder.decoder_rows(codes) + 1
    a = matrix(most, depth, 2, pad=3)
    with np.errstate(all="ignore"):
        expected = bits(Result(codes, a, plain, columns).tiles())
    for count in [*range(1, codes.tile_rows + 2), *range(most - 12, most, 4), most]:
        result = Result(codes, a[:count], held, columns, product=product)
        blocks = blocked.blocking(codes, count, depth, compressed=True)
        np.testing.assert_array_equal(bits(result.rows()), expected[:count])
        np.testing.assert_array_equal(bits(result.tiles(blocks)), expected[:count])


@pytest.mark.slow
@pytest.mark.parametrize("weights", KINDS)
def test_bits_do_not_depend_on_blocks_and_splits(codes: isa.Isa, weights: WeightType) -> None:
    depth, columns = 84, 5 * codes.tile_columns - 3
    count = 3 * codes.tile_rows + 1
    held = container(codes, weights, weight(weights, (depth, columns)))
    result = Result(
        codes, matrix(count, depth, 2), held, columns, product=Product(weights, compressed=True)
    )
    expected = bits(result.tiles())
    for depth_block in (4, 64, 84, 1000):
        for height, row_blocks in ((codes.tile_rows, 1), (codes.tile_rows, 4), (3, 2), (1, 9)):
            for parts in (1, 3, 20):
                found = result.tiles(Blocking(depth_block, height, row_blocks), parts)
                np.testing.assert_array_equal(bits(found), expected)
    for parts in (2, 3, 5):
        np.testing.assert_array_equal(bits(result.rows(parts)), expected)


@pytest.mark.parametrize("weights", KINDS)
def test_what_would_not_pay_stays_as_it_is(level: isa.Isa, weights: WeightType) -> None:
    """Weights with any bits: too many exceptions. And a level that cannot look bytes up."""
    depth, columns = 68, 3 * level.tile_columns - 5
    some = weight(weights, (depth, columns), odd=0)
    spread = np.exp2(np.random.default_rng(1).uniform(-90, 20, some.shape)).astype(some.dtype)
    for b in (spread, some)[: 1 if level.lookup else 2]:
        held = container(level, weights, b)
        assert not is_compressed(held)
        plain = pack_plain(level, b.astype(np.float32))
        for count in (1, 3, level.tile_rows + 2):
            a = matrix(count, depth, 2)
            expected = bits(Result(level, a, plain, columns).rows())
            result = Result(level, a, held, columns, product=Product(weights, compressed=True))
            np.testing.assert_array_equal(bits(result.rows()), expected)
            np.testing.assert_array_equal(bits(result.tiles()), expected)
        np.testing.assert_array_equal(bits(unpacked(level, weights, held, b.shape)), wide_bits(b))


@pytest.mark.slow
def test_more_exceptions_than_a_sample_shows(codes: isa.Isa) -> None:
    """They are met in a later piece of the weight, which is packed again from the first one on."""
    b = weight("f32", (4096, 512), odd=0)
    b[-4:] = np.exp2(np.random.default_rng(1).uniform(-90, 20, (4, 512)))
    few = container(codes, "f32", b)
    b[-80:] = b[-1]
    many = container(codes, "f32", b)
    assert (is_compressed(few), is_compressed(many)) == (True, False)
    for held in (few, many):
        found = unpacked(codes, "f32", held, b.shape)
        np.testing.assert_array_equal(bits(found[:-80]), bits(b[:-80]))
    np.testing.assert_array_equal(bits(found), bits(b))


def test_zeros_are_compressed(codes: isa.Isa) -> None:
    """Pruned weights, and columns that the last panel has too many."""
    b = weight("f32", (64, 2 * codes.tile_columns + 1), odd=0)
    b[::2] = 0
    held = container(codes, "f32", b)
    assert is_compressed(held)
    layout = format.Layout.of(codes, "f32", *b.shape)
    lists = held[layout.lists :].view(np.uint32)[::2]
    assert (lists[:3] == format.END).all()  # no exceptions


def test_weights_read_once_are_not_compressed(codes: isa.Isa) -> None:
    b = weight("f32", (64, 512))
    form = Panels(True, "f32", *b.shape, compressed=True)
    held = pack(b, form, codes, keep=False)
    assert (is_compressed(held), is_compressed(pack(b, form, codes))) == (False, True)
    np.testing.assert_array_equal(bits(unpacked(codes, "f32", held, b.shape)), bits(b))


def test_the_limit_of_rows(level: isa.Isa) -> None:
    for weights in KINDS:
        limit = packed_gemv.packed_gemv_limit(level, Product(weights, compressed=True))
        assert 1 <= limit <= packed_gemv.packed_gemv_limit(level, Product(weights))
    assert 1 <= decoder.decoder_rows(level) <= level.tile_rows
    blocks = blocked.blocking(level, level.tile_rows, 64, compressed=True)
    assert blocks.height <= decoder.decoder_rows(level)


def test_which_weights_are_compressed() -> None:
    assert product_panels(False, "f32", 512, 512).compressed
    assert product_panels(True, "bf16", 512, 512).compressed
    assert not product_panels(True, "f16", 4096, 4096).compressed
    assert not product_panels(False, "f32", 512, 508).compressed  # may stay in a cache
    assert not product_panels(False, "f32", 1023, 1024).compressed


@ptir.jit(backend="faer")
def network(x: Any, table: Any, ids: Any) -> Any:
    wide = table.astype(f32)
    return x @ wide.T, wide[ids]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [f32, bf16])
def test_functions_give_the_same_bits(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight that is read in several pieces, and its rows."""
    columns, depth = 5003, 512
    values = weight("f32" if kind is f32 else "bf16", (columns, depth))
    ids = np.array([0, columns - 1, 77])
    found: list[list[bytes]] = []
    for setting in ("0", "1"):
        monkeypatch.setenv("GPTRS_COMPRESSED_WEIGHTS", setting)
        table = Parameter(values, "table")
        assert table.type == Type((columns, depth), kind)
        calls = [network(matrix(count, depth, count), table, ids) for count in (1, 5, 40)]
        found.append([part.numpy().tobytes() for call in calls for part in call])
    assert found[0] == found[1]
