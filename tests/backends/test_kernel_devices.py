"""The device backends with kernels of the C family: small models as the reference runs them, what
the host does, what stays on the device, missing packages and drivers.

What every backend does is in tests/backend_suite, which runs for these if it is asked to. Rows of
the op table in C are in tests/backends/c_family, and some in WGSL here, drawn by a fixed seed.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.backends.c_family.device_backend import DeviceBackend
from gptrs.backends.c_family.kernels import KERNELS, PARALLEL_KERNELS, PLAIN_KERNELS
from gptrs.backends.discovery import get_backend
from gptrs.backends.opencl import driver as opencl_driver
from gptrs.backends.webgpu import driver as webgpu_driver
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array
from gptrs.models.mobilenet_v2 import MobileNetV2, MobileNetV2Config
from gptrs.models.resnet import ResNet, ResNetConfig
from tests.cases import CASES
from tests.cases.sample import Case
from tests.support.rows import check_sample

DEVICES = ("opencl", "webgpu")
DRIVERS: dict[str, Any] = {"opencl": opencl_driver, "webgpu": webgpu_driver}
_SHARE = 60  # one row in so many is drawn


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """The name of a backend that has a device here."""
    if not (there := get_backend(request.param).is_available()):
        pytest.skip(there.reason)
    return request.param


def backend_of(device: str) -> DeviceBackend:
    found = get_backend(device)
    assert isinstance(found, DeviceBackend)
    return found


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "shape"), [(resnet, (2, 16, 16, 3)), (mobilenet_v2, (1, 3, 32, 32))]
)
def test_a_small_model(build: Callable[[], Any], shape: tuple[int, ...], device: str) -> None:
    model = build()
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    found: list[Array] = []
    for name in (device, "reference"):
        with ptir.backend(name):
            found.append(model(x).numpy())
    assert np.isfinite(found[1]).all()
    assert np.allclose(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_language_model_takes_the_same_tokens(device: str) -> None:
    model = gptrs.load("stories")
    told: list[str] = []
    for name in (device, "faer"):
        with ptir.backend(name):
            told.append(str(model.generate("Once upon a time", max_tokens=6, temperature=0)))
    assert told[0] == told[1]


def rows() -> list[Any]:
    made: list[Any] = []
    for number, case in enumerate(CASES):
        for dtype in case.dtypes:
            seed = zlib.crc32(f"{number} {dtype} webgpu".encode())
            if not seed % _SHARE:
                sample = seed // _SHARE % len(case.samples)
                label = f"{case.op}-{dtype}-{number}"
                made.append(pytest.param("webgpu", case, dtype, sample, id=label))
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("device", "case", "dtype", "sample"), rows(), indirect=["device"])
def test_row(device: str, case: Case, dtype: str, sample: int) -> None:
    check_sample(case, sample, dtype, get_backend(device))


PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda x, y: x @ y,
    "dots": lambda x, y: x @ y.T.reshape(y.shape[1], y.shape[0]).T,
    "transposed": lambda x, y: (y.T @ x.T).T,
}


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("makers", [PLAIN_KERNELS, PARALLEL_KERNELS], ids=["plain", "tiles"])
def test_products_of_each_schedule(
    makers: Any, product: Callable[[Any, Any], Any], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The devices of tests are played by the CPU, and would take one schedule alone."""
    monkeypatch.setattr(backend_of(device).device, "makers", makers)
    rng = np.random.default_rng(3)
    function = ptir.jit(product, backend=device, dynamic={"x": {0: "N"}})
    for rows in (1, 70):
        x = rng.standard_normal((rows, 37)).astype(np.float32)
        y = rng.standard_normal((37, 66)).astype(np.float32)
        assert np.allclose(function(x, y), x @ y, rtol=1e-5, atol=1e-5)


def test_the_host_does_what_has_no_kernel(device: str) -> None:
    @ptir.jit(backend=device)
    def solved(x: Any) -> Any:
        return ptir.linalg.inv(x * 2) + 1

    x = np.eye(2, dtype=np.float32)
    assert solved(x).tolist() == [[1.5, 1], [1, 1.5]]
    report = solved.explain(x).report
    assert [step.name for step in report.steps if step.kind == "reference"] == ["inv"]
    assert "on the host" in str(report)


def test_more_arrays_than_a_kernel_may_have(device: str) -> None:
    def total(*x: Any) -> Any:
        first: Any = x[0]
        return sum(x[1:], start=first)

    found = ptir.jit(total, backend=device)(*(np.full(3, n, np.float32) for n in range(40)))
    assert found.tolist() == [780] * 3


def test_arrays_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a weight is larger than a binding may be."""
    if not (there := get_backend("webgpu").is_available()):
        pytest.skip(there.reason)
    on: Any = backend_of("webgpu").device
    monkeypatch.setattr(on, "_largest", 1024)
    monkeypatch.setattr(on, "_part", 1024)
    x = np.arange(600, dtype=np.float32)
    function = ptir.jit(lambda x, i: (x * 2, ptir.take(x, i), i + 1), backend="webgpu")
    i = np.arange(599, 300, -1)
    doubled, taken, more = function(x, i)
    assert doubled.tolist() == (x * 2).tolist()
    assert taken.tolist() == x[i].tolist()
    assert more.tolist() == (i + 1).tolist()
    with pytest.raises(gptrs.PtirError, match=r"bindings of 1\.0 kB"):
        function(np.ones(10**4, np.float32), i)


def test_weights_are_uploaded_once(device: str) -> None:
    weight = Parameter(np.ones((2, 2), np.float32), "weight")
    function = ptir.jit(lambda x: x @ weight, backend=device)
    on = backend_of(device).device
    uploaded: list[Any] = []
    for _ in range(2):
        assert function(np.ones((1, 2), np.float32)).tolist() == [[2, 2]]
        uploaded.append(on.weights(weight))
    assert uploaded[0] is uploaded[1]


def test_results_stay_on_the_device(device: str) -> None:
    function = ptir.jit(lambda x: (x * 2, x, x.T), backend=device)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    doubled, same, turned = function(x)
    assert {y.device for y in (doubled, same, turned)} == {device}
    again = function(doubled)
    assert again[0].device == device
    assert again[0].tolist() == (x * 4).tolist()
    assert again[2].tolist() == (x * 2).T.tolist()
    assert same.tolist() == x.tolist()
    assert ptir.tensor(x).to_device(device).to_device("cpu").tolist() == x.tolist()


def test_a_donated_argument_is_overwritten_there(device: str) -> None:
    @ptir.jit(backend=device, donate=("cache",))
    def put(cache: Any, x: Any, at: Any) -> Any:
        return ptir.dynamic_update_slice(cache, x, (at,))

    cache = ptir.tensor(np.zeros(5, np.float32)).to_device(device)
    for at in range(3):
        cache = put(cache, np.full(1, at + 1, np.float32), np.int64(at))
    assert cache.device == device
    assert cache.tolist() == [1, 2, 3, 0, 0]


def leaves(tree: Any) -> list[Any]:
    """The arrays in tuples."""
    return [y for part in tree for y in leaves(part)] if isinstance(tree, tuple) else [tree]


def test_order_of_a_known_and_of_a_symbolic_extent(device: str) -> None:
    """A network over all elements, or a row by one work item."""
    rng = np.random.default_rng(2)
    x = rng.integers(-9, 9, (3, 100)).astype(np.float32)
    x[0, ::7], x[1, 3] = np.nan, -0.0

    def function(x: Any) -> Any:
        best = ptir.top_k(x, k=5)
        return ptir.ops.sort(x), ptir.ops.sort(x, descending=True), best, ptir.ops.sort(x.T, axis=1)

    for dynamic in (None, {"x": {1: "N"}}):
        jitted: Any = ptir.jit(function, backend=device, dynamic=dynamic)
        expected: Any = ptir.jit(function, backend="reference", dynamic=dynamic)
        for found, right in zip(leaves(jitted(x)), leaves(expected(x)), strict=True):
            assert found.device == device
            np.testing.assert_array_equal(found.numpy(), right.numpy())


def test_positions_and_segments(device: str) -> None:
    x = np.array([[3, np.nan], [1, -2], [0.5, 7]], np.float32)

    def function(x: Any, s: Any) -> Any:
        half = ptir.cast(x[:, 0], dtype=ptir.f16)
        return (
            ptir.searchsorted(ptir.tensor(np.array([0.5, 1, 3], np.float32)), x[:, 0], right=True),
            *(ptir.segment_reduce(x, s, count=3, reduce=r) for r in ("add", "max", "mean")),
            ptir.scatter_add(half, s, half, axis=0),
        )

    for makers in (KERNELS, PARALLEL_KERNELS):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(backend_of(device).device, "makers", makers)
            jitted: Any = ptir.jit(function, backend=device)
            expected: Any = ptir.jit(function, backend="reference")
            segments = np.array([2, 0, 2])
            for found, right in zip(jitted(x, segments), expected(x, segments), strict=True):
                assert found.device == device
                np.testing.assert_array_equal(found.numpy(), right.numpy())
            with pytest.raises(gptrs.PtirError, match="segment 3 is out of range"):
                jitted(x, segments + 1)
            empty: Any = ptir.jit(lambda x, s: ptir.segment_reduce(x, s, count=2), backend=device)
            with pytest.raises(gptrs.PtirError, match="segment 2 is out of range"):
                empty(x[:, :0], segments)


def test_what_a_driver_may_not_simplify(device: str) -> None:
    """A divisor that is 0 as text, and a reciprocal of one."""
    function: Any = ptir.jit(
        lambda x: (ptir.div(x, 0), ptir.div(x, -0.0), ptir.reciprocal(ptir.reciprocal(x))),
        backend=device,
    )
    over, under, again = function(np.array([2, 0, np.nan, 1e-45], np.float32))
    np.testing.assert_array_equal(over.numpy()[:3], [np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(under.numpy()[:3], [-np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(again.numpy(), [2, 0, np.nan, 0])


def test_branches_and_loops_stay_on_the_device(device: str) -> None:
    def function(x: Any, w: Any, count: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            h, number = state
            return (row + h @ w, number + 1), (h.sum(axis=0), row)

        (h, number), rows = ptir.scan(step, (x[0], 0), x)
        swapped = ptir.scan(lambda s, r: ((s[1], s[0] + r), s[0]), (h, h * 2), x, reverse=True)
        chosen: Any = ptir.cond(h.sum() > 0, lambda a: a * 2, lambda a: a, h)
        halved = ptir.while_loop(
            lambda s: s[1] < count, lambda s: (s[0] * 0.5 + w.sum(), s[1] + 1), (chosen, 0)
        )
        return h, number, rows, swapped, chosen, halved

    rng = np.random.default_rng(0)
    x, w = rng.integers(-2, 3, (5, 4, 3)).astype(np.float32), np.eye(3, dtype=np.float32)
    jitted: Any = ptir.jit(function, backend=device, dynamic={"x": {0: "N"}})
    expected: Any = ptir.jit(function, backend="reference", dynamic={"x": {0: "N"}})
    for count in (0, 3):
        found = leaves(jitted(x[: count + 1], w, np.int64(count)))
        assert {y.device for y in found} == {device}
        right = leaves(expected(x[: count + 1], w, np.int64(count)))
        assert [y.tolist() for y in found] == [y.tolist() for y in right]
    report = jitted.explain(x, w, np.int64(3)).report
    assert {step.kind for step in report.steps} == {"region", "control"}


def test_a_failure_ends_a_loop(device: str) -> None:
    """The condition never fails to hold where an element of the state has no result."""

    def last(x: Any, start: Any) -> Any:
        return ptir.while_loop(lambda at: at < 3, lambda at: ptir.take(x, at), start)

    function: Any = ptir.jit(last, backend=device)
    assert function(np.array([1, 2, 5]), np.array(0)).tolist() == 5
    with pytest.raises(gptrs.PtirError, match="-7"):
        function(np.array([1, -7, 0]), np.array(0))


def test_an_element_without_a_result_is_an_error(device: str) -> None:
    function = ptir.jit(lambda x, i: ptir.take(x, i) * 2, backend=device)
    x, last = np.ones(3, np.float32), np.array([2])
    assert function(x, last).tolist() == [2]
    with pytest.raises(gptrs.PtirError, match="3"):
        function(x, last + 1)
    with pytest.raises(gptrs.PtirError):
        function(x, last + 2**40)


@pytest.mark.parametrize("name", DEVICES)
def test_without_the_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DRIVERS[name], "find_spec", lambda name: None)
    found = DRIVERS[name].availability()
    assert not found
    assert found.is_absent
    assert f"gptrs[{name}]" in found.fix
    assert get_backend(name).devices() == ()


def test_without_a_driver_of_opencl(monkeypatch: pytest.MonkeyPatch) -> None:
    cl = pytest.importorskip("pyopencl")

    def get_platforms() -> list[Any]:
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(cl, "get_platforms", get_platforms)
    assert "no OpenCL driver" in get_backend("opencl").is_available().reason
    assert get_backend("opencl").devices() == ()


def test_without_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webgpu_driver, "find_spec", lambda name: name)
    monkeypatch.setattr(webgpu_driver, "found_adapters", list)
    found = get_backend("webgpu").is_available()
    assert found.is_absent
    assert "no driver has a WebGPU adapter" in found.reason
    assert get_backend("webgpu").devices() == ()
