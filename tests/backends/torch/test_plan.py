"""Plans over torch ops: what stays on the device, what is overwritten, what the host does."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

import gptrs
from gptrs import ptir
from gptrs.backends.cuda import driver
from gptrs.backends.discovery import get_backend
from gptrs.backends.parameter_cache import parameter_cache
from gptrs.backends.torch import functions
from gptrs.backends.torch.device_array import TorchArray
from gptrs.backends.torch.functions.dtypes import carrier
from gptrs.backends.torch.plan import TorchPlan
from gptrs.backends.torch.run import Run
from gptrs.backends.torch.transfer import to_device, to_host
from gptrs.errors import ArgumentError, CheckError, DonatedError, DTypeError, ElementError
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Program
from gptrs.ir.sizes import filled
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, Type
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.backend_suite.test_backend_programs import PROGRAMS, SYMBOLIC, recorded
from tests.cases.programs import record

X = np.sin(np.arange(12, dtype=np.float32)).reshape(3, 4)
CPU = torch.device("cpu")


def jitted(function: Callable[..., Any], **options: Any) -> Any:
    return ptir.jit(backend="torch", **options)(function)


def planned(function: Callable[..., Any], *types: str) -> TorchPlan:
    backend = get_backend("torch")
    plan = backend.plan(lower(record(function, *types), Context(backend)))
    assert isinstance(plan, TorchPlan)
    return plan


def held(tensor: Tensor) -> torch.Tensor:
    found = tensor.held()
    assert isinstance(found, TorchArray)
    return found.tensor


def test_results_stay_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    double = jitted(lambda x: x * 2)
    first = double(X)
    assert (first.device, double(first).device) == ("torch", "torch")
    uploads: list[Any] = []
    monkeypatch.setattr("gptrs.backends.torch.plan.to_device", uploads.append)
    for _ in range(3):  # the slow path, and the fast one
        double(first)
    second = double(first)
    assert not uploads
    assert np.array_equal(np.asarray(second), X * 4)
    assert np.array_equal((first + 1).numpy(), X * 2 + 1), "eager ops read it on the host"
    faer = ptir.jit(lambda x: x + 1)
    for _ in range(3):
        assert np.array_equal(faer(first).numpy(), X * 2 + 1)
        assert np.array_equal(faer(X * 2).numpy(), X * 2 + 1)


def test_tensors_are_sent_to_a_device_and_back() -> None:
    there = ptir.tensor(X).to_device("torch")
    assert there.device == "torch"
    assert there.to_device("torch") is there
    assert held(jitted(lambda x: x.reshape(-1))(there)).data_ptr() != held(there).data_ptr()
    back = there.to_device("cpu")
    assert back.device == "cpu"
    assert np.array_equal(back.numpy(), X)
    assert "-0.5" in repr(there)
    for name, problem in (("cuda", "'cuda' is not available"), ("moon", "no backend 'moon'")):
        with pytest.raises(ArgumentError, match=problem):
            back.to_device(name)
    with pytest.raises(ArgumentError, match="computes on the CPU"):
        there.to_device("faer")


def test_a_donated_argument_is_overwritten_on_the_device() -> None:
    put = jitted(lambda x, v, at: ptir.dynamic_update_slice(x, v, (at,)), donate="x")
    kept = ptir.tensor(np.zeros(6, np.float32)).to_device("torch")
    place = held(kept).data_ptr()
    for n in range(4):
        given = kept
        kept = put(given, np.full(1, n + 1, np.float32), np.int32(n))
        with pytest.raises(DonatedError):
            given.numpy()
    assert held(kept).data_ptr() == place
    assert kept.tolist() == [1, 2, 3, 4, 0, 0]


def test_updates_without_a_copy() -> None:
    def twice(x: Any, y: Any) -> Any:
        made = ptir.dynamic_update_slice(x + 1, y, (0,))
        return ptir.dynamic_update_slice(made, y, (2,))

    source = planned(twice, "f32[5]", "f32[2]").source
    assert source.count("dynamic_update_slice_(") == 2
    read = planned(lambda x, y: (ptir.dynamic_update_slice(x, y, (0,)), x), "f32[5]", "f32[2]")
    assert "dynamic_update_slice_(" not in read.source

    def seen(x: Any, y: Any) -> Any:
        wide = x + 1
        return ptir.dynamic_update_slice(wide, y, (0,)), wide[1:3]

    assert "dynamic_update_slice_(" not in planned(seen, "f32[5]", "f32[2]").source


def test_an_error_before_a_donated_argument_is_overwritten() -> None:
    def update(x: Any, ids: Any) -> Any:
        rows = ptir.take(x, ids, axis=0)
        return ptir.dynamic_update_slice(x, rows, (1,))

    function = jitted(update, donate="x")
    assert "run.settle()" in str(planned_of(function, ptir.tensor(X[0].copy()), np.array([0, 1])))
    given = ptir.tensor(np.arange(5, dtype=np.float32)).to_device("torch")
    with pytest.raises(ElementError, match="index 5 is out of range"):
        function(given, np.array([0, 5]))
    assert given.tolist() == [0, 1, 2, 3, 4]
    assert function(given, np.array([4, 4])).tolist() == [0, 4, 4, 3, 4]


def planned_of(function: Any, *arguments: Any) -> Any:
    return get_backend("torch").plan(function.lowered(*arguments))


def test_weights_travel_once(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = Parameter(X.T.copy(), "w")
    uploads: list[Any] = []

    def count(array: Any, device: Any) -> Any:
        uploads.append(array)
        return to_device(array, device)

    monkeypatch.setattr("gptrs.backends.torch.weights.to_device", count)
    for scale in (1.0, 2.0):  # two programs
        function = jitted(lambda x, s=scale: x @ weight * s)
        for _ in range(3):
            assert np.allclose(function(X).numpy(), X @ X.T * scale, rtol=1e-5)
    assert len(uploads) == 1
    assert any(form.name == "w" for form in parameter_cache.forms())
    parameter_cache.release()
    assert np.allclose(function(X).numpy(), X @ X.T * 2, rtol=1e-5)
    assert len(uploads) == 2


def test_what_torch_has_no_form_for_runs_on_the_host() -> None:
    function = jitted(lambda x: ptir.linalg.svdvals(x) + 1)
    found = function(X)
    assert np.allclose(found.numpy(), np.linalg.svd(X, compute_uv=False) + 1, rtol=1e-5)
    explained = function.explain(X)
    steps = [step for step in explained.report.steps if step.kind == "reference"]
    assert [step.name for step in steps] == ["svdvals"]
    assert "travel" in steps[0].note
    assert found.device == "torch"


def test_the_source_is_python_that_runs() -> None:
    def function(x: Any, w: Any) -> Any:
        return ptir.softmax(x @ w).sum(axis=0) * x.shape[0]

    program = record(function, "f32[?N,4]", "f32[4,3]")
    plan = planned(function, "f32[?N,4]", "f32[4,3]")
    assert str(plan) == plan.source
    scope: dict[str, Any] = {}
    exec(str(plan), scope)
    run = Run(CPU, {"N": 3})
    (found,) = scope[program.name](run, torch.from_numpy(X), torch.from_numpy(X[:, :3].T @ X).mT)
    assert tuple(found.shape) == (3,)
    assert abs(float(found.sum()) - 9) < 1e-4


def test_effects_come_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    called: list[Any] = []

    def function(x: Any, y: Any) -> Any:
        ptir.print("first {}", x[0])
        ptir.callback(lambda v: called.append(float(v)), x[1])
        z = x // y
        ptir.print("second {}", z[0])
        return z

    run = jitted(function)
    good, bad = np.array([1, 2], np.int32), np.array([1, 0], np.int32)
    assert run(good, good).tolist() == [1, 1]
    assert capsys.readouterr().out == "first 1\nsecond 1\n"
    with pytest.raises(ElementError, match="integer division by zero"):
        run(good, bad)
    assert capsys.readouterr().out == "first 1\n"
    assert called == [2, 2]


def test_checks_have_their_text() -> None:
    def function(x: Any) -> Any:
        ptir.check(x.sum() > 0, "the sum is {}", x.sum())
        return x

    with pytest.raises(CheckError, match="the sum is -3"):
        jitted(function)(np.array([-1, -2]))


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_gelu_of_infinity(dtype: str) -> None:
    x = np.full(40, np.inf, np.float32)
    found = jitted(lambda x: ptir.gelu(x.astype(dtype)).astype("f32"))(x)
    assert (found.numpy() == np.inf).all()


def test_loops() -> None:
    def function(x: Any) -> Any:
        state, rows = ptir.scan(lambda s, row: (s + row, s * 2), x[0] * 0, x)
        grown = ptir.while_loop(lambda s: s.sum() < 50, lambda s: s * 2 + 1, ptir.abs(x[0]))
        return state, rows, grown, ptir.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, x)

    for found, exact in zip(jitted(function)(X), ptir.jit(function)(X), strict=True):
        assert np.allclose(found.numpy(), exact.numpy(), rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_every_dtype_travel(dtype: str) -> None:
    numbers = np.array([[0, 1], [1, 3]]).astype(DTYPES[dtype].numpy)
    for array in (numbers, numbers.T, numbers[0, 0:1].reshape(())):
        there = to_device(array, CPU)
        assert np.array_equal(to_host(there, Type.of(array)), array)


def on_meta(plan: TorchPlan, program: Program, sizes: dict[str, int]) -> Any:
    meta = torch.device("meta")
    scope: dict[str, Any] = {}
    exec(plan.source, scope)
    tensors = []
    for param in program.params:
        type = filled(param.type, sizes)
        tensors.append(torch.empty(type.shape, dtype=carrier(type.dtype)).to(meta))
    constants = [
        to_device(i.attrs["value"], CPU).to(meta) for i in program.body if i.op is ptir.ops.constant
    ]
    return scope[program.name](Run(meta, sizes, constants), *tensors)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "branches"])
def test_shapes_on_meta(name: str) -> None:
    backend = get_backend("torch")
    program = lower(recorded(*PROGRAMS[name]), Context(backend))
    program = Program("f", program.params, program.body, program.results)
    found = on_meta(TorchPlan(program, CPU, "torch"), program, {})
    assert [tuple(t.shape) for t in found] == [r.type.shape for r in program.results]


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_shapes_on_meta(name: str) -> None:
    backend = get_backend("torch")
    program = lower(recorded(*SYMBOLIC[name]), Context(backend))
    program = Program("f", program.params, program.body, program.results)
    for size in (1, 5):
        found = on_meta(TorchPlan(program, CPU, "torch"), program, {"N": size})
        types = [filled(r.type, {"N": size}) for r in program.results]
        assert [tuple(t.shape) for t in found] == [type.shape for type in types]


def test_a_precise_function_has_the_bits_of_eager_mode() -> None:
    def function(x: Any) -> Any:
        return ptir.softmax(x @ x.T)

    with ptir.eager():
        expected = jitted(function)(X).numpy()
    assert np.array_equal(jitted(function, precise=True)(X).numpy(), expected)


@pytest.mark.slow
def test_compiled_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_TORCH_COMPILE", "eager")
    function = jitted(lambda x, ids: ptir.take(ptir.tanh(x @ x.T), ids, axis=0))
    found = function(X, np.array([2, 0]))
    assert np.allclose(found.numpy(), np.tanh(X @ X.T)[[2, 0]], rtol=1e-5)
    with pytest.raises(ElementError):
        function(X, np.array([2, 3]))


def test_graphs_copy_what_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as a CPU can: a capture computes, and a replay is recorded."""
    from gptrs.backends.torch.graphs import Graphs

    replays: list[Any] = []

    class Graph:
        def replay(self) -> None:
            replays.append(self)

    @contextmanager
    def capture(graph: Any) -> Any:
        yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    calls: list[Any] = []

    def function(run: Any, x: Any, cache: Any) -> Any:
        calls.append(x)
        return functions.dynamic_update_slice_(cache, x, (1,)), x * 2

    graphs = Graphs(function, [False, True])
    cache, x = torch.zeros(4), torch.ones(2)
    run = Run(CPU, {})
    for n in range(4):
        kept, doubled = graphs.run(run, [x * n, cache])
        assert kept.data_ptr() == cache.data_ptr()
        assert doubled.shape == (2,)
    assert len(calls) == 2, "one run and one capture"
    assert len(replays) == 3
    assert calls[1].tolist() == [3, 3], "later arguments are copied to where the graph reads"
    graphs.run(run, [x, torch.zeros(4)])
    assert len(calls) == 3, "another cache is in another place"


def test_a_dtype_that_a_device_does_not_have() -> None:
    from gptrs.backends.torch.declines import check_dtypes

    program = record(lambda x: x * 2, "f64[3]")
    check_dtypes(program, "cuda", "cuda")
    with pytest.raises(DTypeError, match="mul: metal has no f64"):
        check_dtypes(program, "mps", "metal")


def test_devices_that_are_not_there() -> None:
    found = {status.name: status for status in gptrs.discover_backends()}
    assert found["torch"].is_software
    assert found["torch"].devices[0].name.startswith("torch on ")
    if torch.version.cuda is None and not driver.missing():  # else its own kernels
        assert "is built without CUDA" in found["cuda"].availability.reason
        assert "pytorch.org" in found["cuda"].availability.fix
    if sys.platform != "darwin":
        assert found["metal"].availability.reason == "this is no Mac"


@pytest.mark.slow
def test_the_listing_imports_no_torch() -> None:
    code = "import gptrs, sys; gptrs.discover_backends(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_places_are_integers_beside_narrow_floats() -> None:
    def function(x: Any, at: Any) -> Any:
        cut = ptir.dynamic_slice(x, (1, at), sizes=(2, 2))
        return ptir.dynamic_update_slice(cut, x[:1, :1], (1, 0))

    plan = planned(function, "bf16[3,4]", "si32[]")
    (x,) = (X.astype(DTYPES["bf16"].numpy),)
    (found,) = plan.run([x, np.array(1, np.int32)], {})
    assert found.tolist() == [x[1, 1:3].tolist(), [x[0, 0], x[2, 2]]]


def test_square_roots_are_rounded_once() -> None:
    x = np.random.default_rng(0).uniform(0, 1e9, 4096)
    for dtype in (np.float32, np.float64):
        given = x.astype(dtype)
        assert np.array_equal(jitted(lambda v: ptir.sqrt(v))(given).numpy(), np.sqrt(given))


def test_sums_wrap_before_they_are_widened() -> None:
    x = np.full(9, 40000, np.uint16)

    def function(x: Any) -> Any:
        return ptir.ops.dot_general(x, x, contract_lhs=(0,), contract_rhs=(0,), out_dtype="si32")

    with ptir.eager():
        expected = jitted(function)(x).item()
    assert jitted(function)(x).item() == expected
