"""Arrays of NumPy and torch: no copies in, and the array protocols out."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, DTypeError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor, as_array
from tests.support.lazy_torch import torch

IDENTITY = ptir.jit(lambda x: x)
DTYPES = {
    "i1": "bool",
    "si8": "int8",
    "ui8": "uint8",
    "si16": "int16",
    "si32": "int32",
    "si64": "int64",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "cf32": "complex64",
    "cf64": "complex128",
}


@pytest.mark.parametrize("name", DTYPES)
def test_torch_tensors_come_in_without_a_copy(name: str) -> None:
    source = torch.tensor([[0.0, 1.0], [1.0, 0.5]]).to(getattr(torch, DTYPES[name]))
    tensor = ptir.tensor(source)
    assert tensor.dtype.name == name
    assert tensor.shape == (2, 2)
    assert tensor.numpy().ctypes.data == source.data_ptr()
    found = IDENTITY(source)
    assert found.dtype.name == name
    assert found.numpy().ctypes.data != source.data_ptr()
    wide = torch.complex128 if name.startswith("c") else torch.float64
    np.testing.assert_array_equal(found.numpy().astype(np.complex128), source.to(wide).numpy())


def test_bf16_computes() -> None:
    x = torch.tensor([1.0, 2.0, 3.0]).bfloat16()
    found = ptir.jit(lambda a, b: a * b + 1)(x, x)
    assert found.dtype.name == "bf16"
    assert found.numpy().dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found.numpy().astype(np.float32), (x * x + 1).float().numpy())


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(6.0).reshape(2, 3).T,
        lambda: torch.arange(6.0)[::2],
        lambda: torch.arange(6.0).reshape(2, 3).T.bfloat16(),
        lambda: torch.zeros(0, 3),
        lambda: torch.tensor(3.0),
        lambda: torch.ones(3, requires_grad=True) * 2,
        lambda: torch.nn.Parameter(torch.ones(3)),
        lambda: torch.ones(1).expand(4),
    ],
)
def test_torch_tensors_of_every_layout(make: Callable[[], torch.Tensor]) -> None:
    source = make()
    found = IDENTITY(source)
    assert found.shape == tuple(source.shape)
    np.testing.assert_array_equal(found.numpy().astype(np.float32), source.detach().float().numpy())
    assert found.numpy().flags.c_contiguous


def test_arrays_of_every_layout() -> None:
    whole = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    read_only = whole.copy()
    read_only.flags.writeable = False
    for source in (whole.T, whole[:, ::2], whole[::-1], np.asfortranarray(whole), read_only):
        np.testing.assert_array_equal(IDENTITY(source).numpy(), source)
        assert IDENTITY(source).numpy().flags.writeable
    assert np.shares_memory(ptir.tensor(whole).numpy(), whole)
    swapped = whole.astype(">f4")
    np.testing.assert_array_equal(IDENTITY(swapped).numpy(), whole)
    masked: Any = np.float64(3)
    assert IDENTITY(masked).dtype.name == "f64"
    assert IDENTITY(np.bool_(True)).dtype.name == "i1"


def test_results_go_out() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = ptir.jit(lambda x: x + 1)(x)
    as_numpy, as_torch = np.from_dlpack(found), torch.from_dlpack(found)
    for out in (found.numpy(), np.asarray(found), as_numpy, as_torch.numpy(), np.array(found)):
        np.testing.assert_array_equal(out, x + 1)
    assert np.shares_memory(as_numpy, found.numpy())
    assert as_torch.data_ptr() == found.numpy().ctypes.data
    assert np.asarray(found) is found.numpy()
    assert not np.shares_memory(np.array(found), found.numpy())
    assert np.asarray(found, np.float64).dtype == np.float64
    assert found.tolist() == (x + 1).tolist()
    assert torch.tensor(found.tolist()).shape == (2, 3)
    assert found[0, 0].item() == 1.0


def test_elements_that_cannot_be_written_go_out_as_a_copy() -> None:
    found = ptir.broadcast_to(ptir.tensor([1.0, 2.0]), shape=(2, 2))
    assert not found.numpy().flags.writeable
    found.__dlpack__()
    assert torch.from_dlpack(found).tolist() == found.tolist()


def test_numpy_functions_take_results() -> None:
    x = np.arange(4, dtype=np.float32)
    t = ptir.tensor(x)
    np.testing.assert_array_equal(np.exp(t), np.exp(x))
    np.testing.assert_array_equal(np.concatenate([t, x]), np.concatenate([x, x]))
    np.testing.assert_array_equal(np.stack([t, t]), np.stack([x, x]))
    assert np.mean(t) == x.mean()
    assert np.allclose(t, x)
    assert np.array_equal(t, x)
    assert np.add.reduce(t) == x.sum()
    assert np.argmax(t) == 3


@pytest.mark.parametrize(
    "name", ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "@"]
)
def test_operators_with_arrays_on_either_side(name: str) -> None:
    x = np.arange(1, 4, dtype=np.float32)
    t = ptir.tensor(x[::-1].copy())
    for left, right in ((x, t), (t, x), (np.float32(2), t), (t, np.float32(2))):
        if name == "@" and 0 in (np.ndim(np.asarray(left)), np.ndim(np.asarray(right))):
            continue
        found = eval(f"left {name} right")
        assert isinstance(found, Tensor)
        expected = eval(f"np.asarray(left) {name} np.asarray(right)")
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_bits_with_arrays_on_either_side() -> None:
    x = np.array([1, 2, 3], np.int32)
    t = ptir.tensor(x[::-1].copy())
    for found, expected in ((x & t, x & x[::-1]), (x | t, x | x[::-1]), (x ^ t, x ^ x[::-1])):
        assert isinstance(found, Tensor)
        np.testing.assert_array_equal(found.numpy(), expected)


def test_what_is_no_array() -> None:
    for value in (3, "a", [1], None, np.float32, torch.Tensor, np.dtype("f4"), torch.float32):
        assert as_array(value) is None
    for value in (np.array(["a"]), np.array([object()]), np.array([1], "M8[s]")):
        with pytest.raises(DTypeError):
            as_array(value)
    with pytest.raises(ArgumentError, match="on the CPU"):
        as_array(torch.ones(2, device="meta"))
    with pytest.raises(ArgumentError, match="is no array"):
        ptir.tensor([[1], [2, 3]])


def test_inputs_are_never_changed() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = torch.from_numpy(x.copy())
    step = ptir.jit(lambda a, b: (ptir.softmax(a), b * 2, a.reshape(-1), ptir.maximum(a, b)))
    results = step(x, t)
    np.testing.assert_array_equal(x, np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(t.numpy(), x)
    kept = [r.numpy().copy() for r in results]
    x.fill(-1)
    t.fill_(-1)
    for result, before in zip(results, kept, strict=True):
        np.testing.assert_array_equal(result.numpy(), before)


def test_copies_are_tensors_of_their_own() -> None:
    tensor = ptir.tensor(np.ones(3, np.float32))
    weight = Parameter(np.ones(3, np.float32), "weight")
    twin = copy.deepcopy(tensor)
    tensor.donate("a test")
    assert twin.tolist() == [1.0, 1.0, 1.0]
    other = copy.deepcopy({"w": weight})["w"]
    assert other is not weight
    assert (other.name, other.id, other.tolist()) == (weight.name, weight.id, [1.0, 1.0, 1.0])
