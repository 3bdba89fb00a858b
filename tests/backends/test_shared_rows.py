"""Long rows that groups of work items share: on an emulated GPU of CUDA, and by the driver of
WebGPU."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends import discovery
from gptrs.backends.c_family.loops import GROUP
from gptrs.backends.c_family.schedule import KernelStep, schedule_of
from gptrs.ir.types import Array
from tests.support.cuda_emulator import emulated

RNG = np.random.default_rng(4)


def drawn(*shape: int, dtype: str = "f4") -> Array:
    return (RNG.standard_normal(shape) * 3).astype(dtype)


ROWS: dict[str, tuple[Any, tuple[Array, ...]]] = {
    "sum": (lambda x: x.sum(axis=1), (drawn(5, 1000),)),
    "all": (lambda x: x.sum(), (drawn(5, 1000),)),
    "two axes": (lambda x: x.max(axis=(0, 2)), (drawn(3, 4, 300),)),
    "columns": (lambda x: x.mean(axis=0), (drawn(700, 5),)),
    "softmax": (lambda x: ptir.softmax(x, axis=-1), (drawn(4, 777),)),
    "norm": (lambda x, w: ptir.rms_norm(x, w), (drawn(3, 2, 512), drawn(512))),
    "centred": (
        lambda x: (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1)[:, None],
        (drawn(4, 600),),
    ),
    "f64": (lambda x: (x * x).sum(axis=1), (drawn(3, 400, dtype="f8"),)),
    "integers": (lambda x: x.sum(axis=1), ((drawn(3, 400) * 100).astype("i4"),)),
    "bf16": (lambda x: x.astype(ptir.bf16).sum(axis=1), (drawn(3, 400),)),
    "of two": (
        lambda x, y: (x * y).sum(axis=1) / abs(x).max(axis=1),
        (drawn(6, 333), drawn(6, 333)),
    ),
    "not finite": (
        lambda x: (ptir.softmax(x, axis=1), x.max(axis=1)),
        (
            np.where(
                drawn(4, 500) > 6, np.nan, np.where(drawn(4, 500) < -6, -np.inf, drawn(4, 500))
            ),
        ),
    ),
}


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated(tmp_path, monkeypatch)


def hold(function: Any, backend: str, *arrays: Array, dynamic: Any = None) -> None:
    """Against the reference."""
    found = ptir.jit(function, backend=backend, dynamic=dynamic or {})(*arrays)
    wanted = ptir.jit(function, backend="reference")(*arrays)
    pairs = [(found, wanted)] if not isinstance(wanted, tuple) else zip(found, wanted, strict=True)
    for one, other in pairs:
        tolerance = {ptir.f64: 1e-12, ptir.bf16: 8e-3}.get(other.dtype, 3e-6)
        a, b = (np.asarray(x).astype(np.float64) for x in (one, other))
        limit = tolerance * np.abs(b[np.isfinite(b)]).max(initial=1)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=limit)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
@pytest.mark.parametrize("name", ROWS)
def test_rows_on_the_emulator(name: str, gpu: None) -> None:
    function, arrays = ROWS[name]
    hold(function, "nvrtc", *arrays)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
def test_rows_of_symbolic_lengths(gpu: None) -> None:
    for length in (1, 100, 255, 256, 1030):
        hold(lambda x: ptir.softmax(x, axis=1), "nvrtc", drawn(3, length), dynamic={"x": {1: "N"}})


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"f64"}))
def test_rows_by_webgpu(name: str) -> None:
    backend = discovery.get_backend("webgpu")
    if not (found := backend.is_available()):
        pytest.skip(found.reason)
    function, arrays = ROWS[name]
    hold(function, "webgpu", *arrays)


def test_what_groups_share() -> None:
    def groups(function: Any, *arrays: Array, grouped: bool = True, **options: Any) -> list[int]:
        program = ptir.jit(function, **options).lower(*arrays).program
        steps = schedule_of(program, grouped=grouped).steps
        return [c.kernel.group for s in steps if isinstance(s, KernelStep) for c in s.calls]

    total = lambda x: x.sum(axis=1)
    assert groups(total, drawn(4, 300)) == [GROUP]
    assert groups(total, drawn(4, 300), grouped=False) == [0]
    assert groups(total, drawn(4, 200)) == [0]
    assert groups(total, drawn(4, 300), dynamic={"x": {1: "N"}}) == [0, GROUP]
    assert groups(lambda x: x * 2, drawn(4, 300)) == [0]
