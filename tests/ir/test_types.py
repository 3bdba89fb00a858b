"""Element types, tensor types, broadcasting and axes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptrs.errors import DTypeError, ParseError, ShapeError
from gptrs.ir.dims import DimLike, dim
from gptrs.ir.types import (
    DTYPES,
    Type,
    as_dtype,
    broadcast_shapes,
    dim_text,
    f32,
    normal_axes,
    normal_axis,
    shape_text,
)
from tests.support.lazy_torch import torch

S, T = dim("S"), dim("T")


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_is_found_by_its_names(name: str) -> None:
    dtype = DTYPES[name]
    assert as_dtype(name) is dtype
    assert as_dtype(dtype) is dtype
    assert as_dtype(dtype.numpy) is dtype
    assert as_dtype(dtype.numpy.name) is dtype
    assert str(dtype) == name
    assert copy.deepcopy(dtype) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (np.float32, "f32"),
        ("float32", "f32"),
        (ml_dtypes.bfloat16, "bf16"),
        ("bfloat16", "bf16"),
        (np.dtype(">f4").newbyteorder("="), "f32"),
        (bool, "i1"),
        (float, "f64"),
    ],
)
def test_dtypes_of_numpy(given: Any, name: str) -> None:
    assert as_dtype(given).name == name


TORCH = {
    "float32": "f32",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "int64": "si64",
    "uint8": "ui8",
    "bool": "i1",
    "complex64": "cf32",
}


@pytest.mark.slow
@pytest.mark.parametrize(("theirs", "name"), TORCH.items())
def test_dtypes_of_torch(theirs: str, name: str) -> None:
    assert as_dtype(getattr(torch, theirs)).name == name


@pytest.mark.parametrize("bad", ["float31", "", "F32", np.dtype("U3"), object(), 3])
def test_no_dtype(bad: object) -> None:
    with pytest.raises(DTypeError, match="is no element type") as raised:
        as_dtype(bad)
    assert "fp8_e4m3" in raised.value.fix


def test_no_dtype_of_torch() -> None:
    with pytest.raises(DTypeError, match="is no element type"):
        as_dtype(torch.qint8)


def test_kinds_bits_and_limits() -> None:
    kinds = {d.name: d.kind for d in DTYPES.values()}
    assert kinds["i1"] == "bool"
    assert kinds["si4"] == "int"
    assert kinds["ui64"] == "uint"
    assert kinds["fp8_e5m2"] == "float"
    assert kinds["cf64"] == "complex"
    assert DTYPES["si4"].limits == (-8, 7)
    assert DTYPES["ui4"].limits == (0, 15)
    for dtype in DTYPES.values():
        if dtype.is_integer and dtype.bits >= 8:
            assert dtype.limits == (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
        assert sum([dtype.is_bool, dtype.is_integer, dtype.is_float, dtype.is_complex]) == 1


def test_narrow_floats_are_computed_in_f32() -> None:
    assert {d.name for d in DTYPES.values() if d.compute is not d} == {
        "fp8_e4m3",
        "fp8_e5m2",
        "bf16",
        "f16",
    }
    assert DTYPES["bf16"].compute is f32


extents = st.one_of(
    st.integers(0, 5),
    st.sampled_from([S, T, S * T, S + 1, S * 2 - T, S // 2, (S + T) * S]),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(DTYPES)), st.lists(extents, max_size=4))
def test_a_printed_type_is_read_back(name: str, shape: list[DimLike]) -> None:
    made = Type(shape, DTYPES[name])
    read = Type.parse(str(made))
    assert read == made
    assert hash(read) == hash(made)
    assert " " not in str(made)


def test_types_as_text() -> None:
    assert str(Type((2, S), f32)) == "f32[2,?S]"
    assert str(Type((), f32)) == "f32[]"
    assert str(Type((S * T + 1,), f32)) == "f32[?S*?T+1]"
    assert str(Type((S * S // 2,), f32)) == "f32[((?S**2)//(2))]"
    assert dim_text(S - 1) == "?S-1"
    assert shape_text((2, S)) == "[2,?S]"


@pytest.mark.parametrize(
    "text",
    ["", "f32", "f32[", "f32[2", "f33[2]", "[2]", "f32[x y]", "f32[2,,3]", "f32[-1]", "f32[,]"],
)
def test_a_text_that_is_no_type(text: str) -> None:
    with pytest.raises(ParseError):
        Type.parse(text)


def test_types_are_equal_by_normal_form() -> None:
    assert Type((S + T,), f32) == Type((T + S,), f32)
    assert Type((S,), f32) != Type((3,), f32)  # and no DimError
    assert Type((S,), f32) != Type((T,), f32)
    assert Type((2,), f32) != Type((2,), DTYPES["bf16"])
    assert Type((2,), f32) != "f32[2]"
    assert len({Type((S + 1, 2), f32), Type((1 + S, 2), f32)}) == 1


def test_type_of_an_array_and_changes() -> None:
    type = Type.of(np.zeros((2, 0, 3), ml_dtypes.bfloat16))
    assert str(type) == "bf16[2,0,3]"
    assert type.rank == 3
    assert type.size == 0
    assert str(type.with_shape((S, 2))) == "bf16[?S,2]"
    assert str(type.with_dtype(f32)) == "f32[2,0,3]"
    assert Type((S, 4), f32).size == S * 4


shapes = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4).map(tuple)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(shapes, min_size=1, max_size=3))
def test_broadcasting_is_numpys(several: list[tuple[int, ...]]) -> None:
    try:
        expected = np.broadcast_shapes(*several)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast: axis -"):
            broadcast_shapes(*several)
    else:
        assert broadcast_shapes(*several) == expected


def test_symbols_broadcast_with_themselves_and_with_one() -> None:
    assert broadcast_shapes((S, 1), (T,)) == (S, T)
    assert broadcast_shapes((S + T,), (T + S,)) == (S + T,)
    assert broadcast_shapes((), (1,), (S,)) == (S,)
    for a, b in (((S,), (3,)), ((S,), (T,)), ((S,), (S + 1,)), ((0,), (S,))):
        with pytest.raises(ShapeError, match=r"\?S in one|\?S in another|\?S in|and \?"):
            broadcast_shapes(a, b)


def test_axes_count_from_either_end() -> None:
    assert [normal_axis(a, 3) for a in (0, 2, -1, -3)] == [0, 2, 2, 0]
    assert normal_axes(None, 3) == (0, 1, 2)
    assert normal_axes((-1, 0), 3) == (0, 2)
    assert normal_axes((), 3) == ()
    assert normal_axes(-2, 3) == (1,)
    for bad in (3, -4):
        with pytest.raises(ShapeError, match=f"axis {bad} is out of range, .* -3 and 2"):
            normal_axis(bad, 3)
    with pytest.raises(ShapeError, match="rank 0"):
        normal_axis(0, 0)
    with pytest.raises(ShapeError, match="name an axis twice"):
        normal_axes((0, -3), 3)
