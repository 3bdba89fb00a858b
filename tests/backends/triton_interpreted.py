"""Tile programs of an emulated GPU, run by Triton's interpreter.

Triton reads ``TRITON_INTERPRET`` when it is imported, so `tests.backends.test_triton` runs these
tests in a process of their own. The interpreter takes bf16 for integers, but where it is converted:
products of two bf16 are compiled and not run.
"""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.backends.c_family.kernels import PARALLEL_KERNELS
from gptrs.backends.cuda.backend import NvrtcBackend
from gptrs.backends.triton import compiler
from gptrs.ir.types import DTYPES as TYPES
from gptrs.ir.types import Array
from tests.support.cuda_emulator import Emulator, emulated

RNG = np.random.default_rng(8)


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """The backend ``nvrtc`` with an emulated driver, and Triton's interpreter."""
    return emulated(tmp_path, monkeypatch, triton=True)


def drawn(*shape: int, dtype: str = "f32") -> Array:
    return RNG.standard_normal(shape).astype(TYPES[dtype].numpy)


def check(function: Any, *arrays: Array, dynamic: Any = None, tolerance: float = 2e-6) -> str:
    """Hold results of tile programs against the reference's. Returns the names of
    those that ran."""
    Emulator.launched.clear()
    on_gpu = ptir.jit(function, backend="nvrtc", dynamic=dynamic or {})
    found = np.asarray(on_gpu(*arrays)).astype(np.float64)
    wanted = np.asarray(ptir.jit(function, backend="reference")(*arrays)).astype(np.float64)
    limit = tolerance * max(float(np.abs(wanted).max(initial=0)), 1e-30)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=limit)
    return " ".join(Emulator.launched)


PRODUCTS: dict[str, tuple[Any, tuple[Array, ...]]] = {
    "odd": (lambda x, y: x @ y, (drawn(70, 37), drawn(37, 66))),
    "large": (lambda x, y: x @ y, (drawn(130, 300), drawn(300, 129))),
    "batches": (lambda x, y: x @ y, (drawn(3, 20, 40), drawn(3, 40, 17))),
    "one for all": (lambda x, y: x @ y, (drawn(3, 20, 40), drawn(40, 17))),
    "transposed": (lambda x, y: x.T @ y.T, (drawn(37, 70), drawn(66, 37))),
    "parts": (lambda x, y: x[1::2, 3:] @ y[3:, ::3], (drawn(80, 40), drawn(40, 90))),
    "one row for all": (
        lambda x, y: ptir.broadcast_to(x, shape=(20, 40)) @ y,
        (drawn(40), drawn(40, 17)),
    ),
    "one number in a row": (
        lambda x, y: ptir.einsum("ik,kj->ij", ptir.broadcast_to(x, shape=(20, 40)), y),
        (drawn(20, 1), drawn(40, 17)),
    ),
    "several axes": (
        lambda x, y: ptir.einsum("abkl,klcd->abcd", x, y),
        (drawn(5, 6, 7, 8), drawn(7, 8, 3, 11)),
    ),
    "axes apart": (
        lambda x, y: ptir.einsum("akbl,lckd->abcd", x, y),
        (drawn(5, 7, 6, 8), drawn(8, 3, 7, 11)),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(gpu: Emulator, name: str) -> None:
    function, arrays = PRODUCTS[name]
    assert "matmul_tile_program" in check(function, *arrays)


@pytest.mark.parametrize(("one", "other"), [("f16", "f16"), ("bf16", "f32"), ("f16", "bf16")])
def test_narrow_floats(gpu: Emulator, one: str, other: str) -> None:
    x, y = drawn(40, 50, dtype=one), drawn(50, 30, dtype=other)
    multiplied = lambda x, y: ptir.einsum("ik,kj->ij", x, y)
    assert "matmul_tile_program" in check(multiplied, x, y, tolerance=8e-3)


def test_few_rows_and_other_dtypes_stay_in_c(gpu: Emulator) -> None:
    assert "tile_program" not in check(lambda x, y: x @ y, drawn(3, 40), drawn(40, 50))
    assert "tile_program" not in check(lambda x, y: x @ y, drawn(30, 40), drawn(40))
    integers = [(drawn(30, 30) * 9).astype(np.int32) for _ in range(2)]
    assert "tile_program" not in check(lambda x, y: x @ y, *integers)


def test_symbolic_rows(gpu: Emulator) -> None:
    y = drawn(40, 30)
    for rows in (2, 70):
        names = check(lambda x, y: x @ y, drawn(rows, 40), y, dynamic={"x": {0: "N"}})
        assert ("matmul_tile_program" in names) == (rows > 2)


ATTENTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "window": {"causal": True, "window": 20},
    "cap": {"causal": True, "softcap": 3.0, "scale": 0.5},
}


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_attention(gpu: Emulator, name: str, dtype: str) -> None:
    q, k, v = (drawn(*s, dtype=dtype) for s in ((2, 4, 70, 40), (2, 2, 90, 40), (2, 2, 90, 24)))
    attend = lambda q, k, v: ptir.attention(q, k, v, **ATTENTIONS[name])
    names = check(attend, q, k, v, tolerance=4e-6 if dtype == "f32" else 2e-3)
    assert "attention_tile_program" in names


def test_attention_to_keys_that_are_broadcast(gpu: Emulator) -> None:
    q, k = drawn(3, 4, 40, 16), drawn(1, 1, 50, 1)

    def attend(q: Any, k: Any) -> Any:
        wide = ptir.broadcast_to(k, shape=(3, 2, 50, 16))
        return ptir.attention(q, wide, wide)

    assert "attention_tile_program" in check(attend, q, k, tolerance=4e-6)


def test_attention_to_a_part_of_the_keys(gpu: Emulator) -> None:
    q, k, v = drawn(3, 2, 40, 16), drawn(3, 2, 100, 16), drawn(3, 2, 100, 16)
    start, end = np.array([0, 7, 60]), np.array([100, 47, 60])

    def attend(q: Any, k: Any, v: Any, start: Any, end: Any) -> Any:
        return ptir.attention(q, k, v, start, end, causal=True)

    assert "attention_tile_program" in check(attend, q, k, v, start, end, tolerance=4e-6)


def test_attention_of_symbolic_lengths(gpu: Emulator) -> None:
    attend = lambda q, k, v: ptir.attention(q, k, v, causal=True)
    sizes = {"q": {2: "N"}, "k": {2: "M"}, "v": {2: "M"}}
    for queries, keys in ((1, 50), (70, 90)):
        arrays = drawn(1, 2, queries, 16), drawn(1, 2, keys, 16), drawn(1, 2, keys, 16)
        names = check(attend, *arrays, dynamic=sizes, tolerance=4e-6)
        assert ("attention_tile_program" in names) == (queries > 1)


def test_a_language_model_takes_the_same_tokens(gpu: Emulator) -> None:
    model = gptrs.load("stories")
    told: list[str] = []
    prompt = (
        "Once upon a time there was a little girl who lived in a house by the sea with her cat."
    )
    for name in ("nvrtc", "faer"):
        with ptir.backend(name):
            told.append(str(model.generate(prompt, max_tokens=3, temperature=0)))
    assert told[0] == told[1]
    assert any("tile_program" in name for name in Emulator.launched)


def test_without_triton(gpu: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "has_triton", lambda: False)
    assert NvrtcBackend().open().makers is PARALLEL_KERNELS
