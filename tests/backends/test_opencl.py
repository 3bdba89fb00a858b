"""The OpenCL backend: small models as the reference runs them, what the host does, missing drivers.

What every backend does is in tests/backend_suite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.discovery import get_backend
from gptrs.backends.opencl import backend as module
from gptrs.backends.opencl import driver
from gptrs.backends.opencl.backend import OpenCLBackend
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.models.mobilenet_v2 import MobileNetV2, MobileNetV2Config
from gptrs.models.resnet import ResNet, ResNetConfig

there = OpenCLBackend().is_available()
needs_opencl = pytest.mark.skipif(not there, reason=there.reason)


def drawn() -> Callable[[str, tuple[int, ...]], Parameter]:
    """Parameters of about the size that keeps activations around 1."""
    rng = np.random.default_rng(0)

    def parameter(name: str, shape: tuple[int, ...]) -> Parameter:
        depth = max(int(np.prod(shape[:-1])), 1)
        x = rng.standard_normal(shape).astype(np.float32) / np.sqrt(depth)
        return Parameter(np.abs(x) + 0.5 if len(shape) == 1 else x, name)

    return parameter


def resnet() -> Any:
    config = ResNetConfig(
        embedding_size=4,
        hidden_sizes=(8, 12),
        depths=(1, 1),
        layer_type="bottleneck",
        num_labels=5,
    )
    return ResNet.build(config, drawn())


def mobilenet_v2() -> Any:
    config = MobileNetV2Config(depth_multiplier=0.1, finegrained_output=False, num_labels=5)
    return MobileNetV2.build(config, drawn())


@needs_opencl
@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "shape"), [(resnet, (2, 16, 16, 3)), (mobilenet_v2, (1, 3, 32, 32))]
)
def test_a_small_model(build: Callable[[], Any], shape: tuple[int, ...]) -> None:
    model = build()
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    found: list[Array] = []
    for name in ("opencl", "reference"):
        with ptir.backend(name):
            found.append(model(x).numpy())
    assert np.isfinite(found[1]).all()
    assert np.allclose(*found, rtol=1e-4, atol=1e-5)


@needs_opencl
def test_the_host_does_what_has_no_kernel() -> None:
    @ptir.jit(backend="opencl")
    def ranked(x: Any) -> Any:
        ordered: Any = ptir.sort(x * 2)
        return ordered + 1

    x = np.array([3, 1, 2], np.float32)
    assert ranked(x).tolist() == [3, 5, 7]
    report = ranked.explain(x).report
    assert [step.name for step in report.steps if step.kind == "reference"] == ["sort"]
    assert "on the host" in str(report)


@needs_opencl
def test_weights_are_uploaded_once() -> None:
    weight = Parameter(np.ones((2, 2), np.float32), "weight")
    backend: Any = get_backend("opencl")
    function = ptir.jit(lambda x: x @ weight, backend="opencl")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownVariableType]
    for _ in range(2):
        assert function(np.ones((1, 2), np.float32)).tolist() == [[2, 2]]  # pyright: ignore[reportUnknownMemberType]
    assert id(weight) in backend._device._weights


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    found = module.availability()
    assert not found
    assert found.is_absent
    assert "gptrs[opencl]" in found.fix
    assert OpenCLBackend().devices() == ()


@needs_opencl
def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    cl = driver.opencl()

    def get_platforms() -> list[Any]:
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(cl, "get_platforms", get_platforms)
    assert "no OpenCL driver" in OpenCLBackend().is_available().reason
    assert OpenCLBackend().devices() == ()
