"""sort and top_k as kernels: the bits of the reference, for every dtype, layout, level and number
of threads."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType
from gptrs.kernels.compiler import isa
from tests.cases import CASES
from tests.support.kernels import HERE

SORTED = [dtype for case in CASES if case.op == "sort" for dtype in case.dtypes]
SHAPES = [((7,), 0), ((300,), 0), ((3, 500), 1), ((400, 19), 0), ((2, 40, 3), 1), ((0, 3), 1)]
FORMS: dict[str, Callable[[Any], Any]] = {
    "values": lambda pair: pair[0],
    "order": lambda pair: pair[1],
    "both": lambda pair: pair,
}


def drawn(shape: tuple[int, ...], dtype: DType) -> Array:
    """Elements of any bits, many of them equal; of floats many zeros of both signs and NaNs."""
    rng, count = np.random.default_rng(len(shape)), int(np.prod(shape))
    if not dtype.is_float:
        return ptir.tensor(rng.integers(-(2**60), 2**60, shape)).astype(dtype).numpy()
    x = rng.choice([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf], count)
    found = np.array(ptir.tensor(x).astype(dtype).numpy())
    bits = found.view(f"u{found.dtype.itemsize}")
    some = rng.random(count) < 0.5
    bits[some] = rng.integers(0, 2 ** (8 * bits.itemsize) - 1, some.sum(), bits.dtype, True)
    return found.reshape(shape)


def check(function: Callable[[Tensor], Any], x: Array) -> None:
    compiled = ptir.jit(function)
    found, expected = compiled(x), ptir.jit(backend="reference")(function)(x)
    kinds = {step.kind for step in compiled.explain(x).report.steps}
    assert "reference" not in kinds
    pairs = zip(*((r,) if isinstance(r, Tensor) else r for r in (found, expected)), strict=True)
    for a, b in pairs:
        a, b = np.array(a.numpy()), np.array(b.numpy())
        assert a.shape == b.shape
        if a.dtype.kind not in "iubf" or a.dtype.itemsize < 4:
            # The reference converts narrow floats, which changes a NaN's other bits.
            nan = np.isnan(b.astype(np.float32))
            assert (np.isnan(a.astype(np.float32)) == nan).all()
            a[nan] = b[nan] = 0
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", dict.fromkeys(SORTED))
def test_bits(name: str, form: str) -> None:
    dtype: DType = getattr(ptir, name)
    for shape, axis in SHAPES:
        x = drawn(shape, dtype)
        for way in (False, True):
            check(lambda x: FORMS[form](ptir.ops.sort(x, axis=axis, descending=way)), x)  # noqa: B023


def best(k: int, axis: int, *, largest: bool, form: str = "both") -> Callable[[Tensor], Any]:
    """The best along an axis."""

    def found(x: Tensor) -> Any:
        return FORMS[form](ptir.top_k(x, k=k, axis=axis, largest=largest))

    return found


def turned(function: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """A function of an array, given its transpose."""
    return lambda x: function(ptir.transpose(x, perm=tuple(range(x.ndim))[::-1]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["f32", "f64", "si8", "bf16"])
def test_the_best(name: str, form: str) -> None:
    """As many as decide between selection and a sort of all, of lines in any layout."""
    dtype: DType = getattr(ptir, name)
    for shape, axis in [((3, 1500), 1), ((1500, 5), 0), ((0, 3), 1), ((4, 9), 1)]:
        x = drawn(shape, dtype)
        for k in {0, 1, min(9, shape[axis]), shape[axis] // 7, shape[axis]}:
            for way in (False, True):
                function = best(k, axis, largest=way, form=form)
                check(function, x)
                check(turned(function), x.T.copy())


def test_best_that_come_late() -> None:
    """Each block of selection has better ones than all before it; or only equal ones."""
    rising = np.arange(5000, dtype=np.float32)
    for x in (rising, rising[::-1].copy(), np.zeros(5000, np.float32), rising % 3):
        for k in (1, 20, 300):
            check(best(k, 0, largest=True), x)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_keys_with_equal_upper_halves(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2**34, (3, 1000)).astype(np.int64)
    x[1] = rng.integers(-40, 40, 1000)
    x[2] = rng.integers(2**31 - 20, 2**31 + 20, 1000)
    if dtype is np.float64:
        x = (x & (2**34 - 1)) | 0x3FF0_0000_0000_0000
    given = x.view(dtype)
    for way in (False, True):
        check(lambda x: ptir.ops.sort(x, descending=way), given)  # noqa: B023
        check(lambda x: ptir.ops.sort(x, descending=way)[1], given)  # noqa: B023
    check(best(9, 1, largest=True), given)


@pytest.mark.parametrize("name", HERE)
def test_levels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_ISA", name)
    assert isa.current().name == name
    x = drawn((4, 3000), ptir.f32)
    for axis in (0, 1):
        check(lambda x: ptir.ops.sort(x, axis=axis), x)  # noqa: B023
        check(lambda x: ptir.ops.sort(x, axis=axis, descending=True)[0], x)  # noqa: B023
    check(lambda x: ptir.top_k(x, k=10), x)


@pytest.mark.parametrize(("shape", "axis"), [((300, 2000), 0), ((301, 700), 1), ((90_000,), 0)])
def test_threads(shape: tuple[int, ...], axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = drawn(shape, ptir.f32)
    order = np.argsort(x, axis, kind="stable")
    expected = np.take_along_axis(x, order, axis)
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        alone = ptir.jit(lambda x: ptir.ops.sort(x, axis=axis)[0])(x)
        values, positions = ptir.jit(lambda x: ptir.ops.sort(x, axis=axis))(x)
        assert positions.numpy().tobytes() == order.tobytes()
        assert values.numpy().tobytes() == alone.numpy().tobytes() == expected.tobytes()
