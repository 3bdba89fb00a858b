"""A Llama of plain ops: its cache stays where it is, and its parts run as fused kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.types import DType, bf16, f32
from tests.support.plain_llama import Sizes, empty_cache, forward, random_weights, step

SIZES = Sizes()
WEIGHTS = random_weights(SIZES)


def tokens(count: int, batch: int = 1) -> Any:
    return np.random.default_rng(count).integers(0, SIZES.vocabulary, (batch, count))


@pytest.mark.parametrize("dtype", [f32, bf16], ids=str)
@pytest.mark.parametrize(("count", "batch"), [(1, 1), (7, 1), (1, 3)])
def test_the_plan(count: int, batch: int, dtype: DType) -> None:
    """No step of the reference, no copy of the cache, and nothing that grows with it."""
    sizes = set[int]()
    for capacity in (64, 256):
        cache = empty_cache(SIZES, capacity, batch, dtype.numpy)
        plan = step.explain(WEIGHTS, tokens(count, batch), cache, np.int32(3), SIZES)
        found = plan.report
        assert found.instructions("reference") == 0
        assert "reference" not in str(plan)
        assert found.copies == ()
        assert {s.note for s in found.steps if "update" in s.name} == {"in place"}
        names = [s.name.split(".")[2] for s in found.steps if s.name.startswith("gpt_rs.")]
        assert [names.count(n) for n in ("attention", "rotary", "rms_norm", "softmax")] == [
            SIZES.layers,
            2 * SIZES.layers,
            2 * SIZES.layers + 1,
            0,
        ]
        sizes.add(found.arena_bytes + found.result_bytes)
    assert len(sizes) == 1


def texts(run: Any, parts: list[int], **more: Any) -> list[Any]:
    """Logits of a text in parts of these lengths."""
    cache, at, found = empty_cache(SIZES, 32, 2, **more), 0, list[Any]()
    ids = tokens(sum(parts), 2)
    for part in parts:
        logits, cache = run(WEIGHTS, ids[:, at : at + part], cache, np.int32(at), SIZES)
        found.append(logits.numpy())
        at += part
    return found


def test_the_cache_is_written_where_it_is() -> None:
    cache = empty_cache(SIZES, 32)
    arrays = [each.numpy() for each in cache]
    for at in range(3):
        _, cache = step(WEIGHTS, tokens(1), cache, np.int32(at), SIZES)
        assert all(each.numpy() is array for each, array in zip(cache, arrays, strict=True))


def test_the_numbers() -> None:
    found = texts(step, [5, 1, 1, 4])
    with ptir.backend("reference"):
        expected = texts(ptir.jit(static_argnames="s")(forward), [5, 1, 1, 4])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5)  # of numbers of order 1, as in parity
    whole = np.concatenate(found, 1)
    for parts in ([11], [1] * 11):
        np.testing.assert_array_equal(np.concatenate(texts(step, parts), 1), whole)
    narrow = np.concatenate(texts(step, [5, 6], dtype=bf16.numpy), 1)
    assert 0 < np.abs(narrow - whole).max() < 0.1
