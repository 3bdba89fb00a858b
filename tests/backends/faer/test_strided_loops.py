"""Fused loops over strided elements: what they compute, and that they read whole vectors."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gptrs import ptir
from gptrs.kernels.compiler import isa


@ptir.jit
def every_second(x: ptir.Tensor) -> ptir.Tensor:
    return x[::2, ::2]


@pytest.mark.parametrize("step", [2, 3, 4, -2])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1"])
def test_elements_at_distances(step: int, dtype: str) -> None:
    x = np.random.default_rng(0).integers(-50, 50, (5, 131)).astype(dtype)

    @ptir.jit
    def doubled(x: ptir.Tensor) -> ptir.Tensor:
        return x[:, ::step] + x[:, ::step]

    found = doubled(x)
    np.testing.assert_array_equal(found.numpy(), x[:, ::step] * 2)


@pytest.mark.skipif(isa.current().vector_bits < 256, reason="shuffles are no faster")
def test_every_second_element_is_shuffled_out_of_vectors() -> None:
    x = np.ones((40, 200), np.float32)
    explained = every_second.explain(x)
    (name,) = explained.sources
    text = explained.kernels[name].llvm()
    assert "masked.gather" not in text
    assert re.search(r"shufflevector <\d+ x float>.*<i32 0, i32 2, i32 4", text)
