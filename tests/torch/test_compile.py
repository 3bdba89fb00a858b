"""``torch.compile(backend="gptrs")``: results, gradients, sizes, changes of parameters, effects."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed
from torch.testing import assert_close

import gptrs.torch
from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.torch.compiled import noted_calls
from gptrs.torch.dynamo import gptrs as backend

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:copyreg")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing is compiled yet, and the generator starts anew."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend=backend, **options)


def model() -> Any:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def test_inference_is_one_native_plan() -> None:
    net, x = model().eval(), torch.randn(3, 8)
    quick = compiled(net)
    with torch.no_grad():
        assert_close(quick(x), net(x))
        (graph,) = gptrs.torch.explain(quick, x)
    assert graph.fallbacks == ()
    assert graph.plan is not None
    assert graph.plan.report.instructions("reference", "host") == 0
    assert graph.plan.report.parameter_bytes > 0
    assert "layer_norm" in str(graph.program)


def test_the_backend_has_an_entry_point() -> None:
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="torch_dynamo_backends", name="gptrs")
    assert entry.load() is backend


def test_one_program_serves_all_lengths() -> None:
    net = model().eval()
    quick = compiled(net, dynamic=True)
    with torch.no_grad(), noted_calls() as calls:
        for length in range(2, 40):
            x = torch.randn(length, 8)
            assert_close(quick(x), net(x))
    assert len({call.function for call in calls}) == 1
    function: Any = calls[0].function
    assert function.cache_info().misses == 1


def test_sizes_that_programs_depend_on_are_traced_each() -> None:
    def halves(x: torch.Tensor) -> torch.Tensor:
        return x[: x.shape[0] // 2].sum(0) + x.reshape(-1)[: min(x.shape[0], 5)].sum()

    quick = compiled(halves, dynamic=True)
    for length in (4, 5, 6, 9):
        x = torch.randn(length, 3)
        assert_close(quick(x), halves(x))


def test_gradients_are_those_of_torch() -> None:
    net, x = model(), torch.randn(5, 8, requires_grad=True)
    net(x).square().sum().backward()
    wanted = [x.grad, *(p.grad for p in net.parameters())]
    x.grad = None
    net.zero_grad()
    compiled(net)(x).square().sum().backward()
    assert_close([x.grad, *(p.grad for p in net.parameters())], wanted)


def test_training_moves_parameters_and_statistics() -> None:
    def train(run: Any, net: nn.Module) -> list[torch.Tensor]:
        steps = torch.optim.SGD(net.parameters(), lr=0.1)
        for seed in range(3):
            torch.manual_seed(seed)
            loss = run(torch.randn(6, 3, 8, 8)).square().mean()
            steps.zero_grad()
            loss.backward()
            steps.step()
        return [*net.parameters(), *net.buffers()]

    def net() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.MaxPool2d(2))

    plain, other = net(), net()
    assert_close(train(compiled(other), other), train(plain, plain), rtol=1e-4, atol=1e-5)


def test_a_changed_parameter_is_noticed() -> None:
    net, x = model().eval(), torch.randn(3, 8)
    quick = compiled(net)
    with torch.no_grad():
        quick(x)
        for _ in range(4):  # more often than packing pays
            net[0].weight.mul_(1.5)
            assert_close(quick(x), net(x))
        net[3].bias = nn.Parameter(torch.ones(4))
        assert_close(quick(x), net(x))


def test_graphs_share_packed_parameters() -> None:
    weight = nn.Parameter(torch.randn(64, 64))
    first = compiled(lambda x: x @ weight)
    second = compiled(lambda x: torch.relu(x @ weight))
    with torch.no_grad(), noted_calls() as calls:
        first(torch.randn(2, 64))
        second(torch.randn(2, 64))
    functions: list[Any] = [call.function for call in calls]
    pairs = zip(functions, calls, strict=True)
    (one,), (two,) = (f.lower(*call.arrays).compile().parameters for f, call in pairs)
    assert one is two


def test_operands_are_written_in_place() -> None:
    def fill(x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        cache[1:3] = x
        return cache.sum()

    cache, other = torch.zeros(4, 5), torch.zeros(4, 5)
    x = torch.randn(2, 5)
    assert_close(compiled(fill)(x, cache), fill(x, other))
    assert_close(cache, other)


def test_views_of_operands_share_their_memory() -> None:
    def views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.t(), x, x + 1, x[0]

    x = torch.randn(3, 4)
    turned, same, _, row = compiled(views)(x)
    x.zero_()
    assert same is x
    assert not turned.any()
    assert not row.any()


@pytest.mark.parametrize("turned", [False, True])
def test_strides_are_those_of_memory(turned: bool) -> None:
    def corner(x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided((x + 1).t() if turned else x + 1, (2, 3), (1, 2), 1) * 2

    x = torch.randn(3, 4)
    assert_close(compiled(corner)(x), corner(x))


@pytest.mark.parametrize("inner", [False, True])
def test_strides_reach_memory_before_a_view(inner: bool) -> None:
    def corner(x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided((x + 1)[2:6] if inner else x, (2, 2), (1, 2), 0) * 2

    x = torch.arange(10.0) if inner else torch.arange(10.0)[2:6]
    with ptir.eager():
        assert_close(compiled(corner)(x), corner(x))


def test_strides_from_the_begin_of_an_operand_are_in_the_program() -> None:
    def windows(x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided(x, (4, 3), (1, 1)) * 2

    x = torch.arange(10.0)[2:8]
    with ptir.eager(), noted_calls() as calls:
        assert_close(compiled(windows)(x), windows(x))
    assert calls[0].function is not None


def test_graph_breaks_and_calls_of_python_between() -> None:
    seen: list[float] = []

    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        seen.append(float(y.sum()))
        return y * 2 if y.sum() > 0 else y

    x = torch.randn(5)
    graphs = gptrs.torch.explain(compiled(broken), x)
    assert len(graphs) > 1
    assert_close(compiled(broken)(x), x.exp() * 2)


def test_what_the_table_lacks_is_run_by_torch_and_named() -> None:
    def reflected(x: torch.Tensor) -> torch.Tensor:
        return linalg.householder_product(x + 1, x[0]).exp()

    linalg: Any = torch.linalg
    x = torch.randn(5, 4)
    quick = compiled(reflected)
    (graph,) = gptrs.torch.explain(quick, x)
    name = "linalg_householder_product.default"
    assert [f.operator for f in graph.fallbacks] == [name]
    assert f"torch runs {name}: it is not in the table" in str(graph)
    assert_close(quick(x), reflected(x))
    with pytest.raises(Exception, match=rf"aten\.{name} has no form in PTIR"):
        compiled(reflected, fullgraph=True, options={"strict": True})(x)


def test_a_graph_that_ptir_cannot_have_is_run_by_torch() -> None:
    def rounded(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float8_e4m3fnuz).to(torch.float32)

    x = torch.randn(3)
    (graph,) = gptrs.torch.explain(compiled(rounded), x)
    assert graph.plan is None
    assert str(graph).startswith("torch runs the whole graph: torch.float8_e4m3fnuz is no")
    assert_close(compiled(rounded)(x), rounded(x))


def test_operators_with_effects_keep_their_order() -> None:
    def inverse(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x) @ torch.linalg.inv(x.mT)

    quick, x = compiled(inverse), torch.randn(3, 3)
    assert_close(quick(x), inverse(x), rtol=1e-3, atol=1e-3)
    with pytest.raises(RuntimeError, match=r"[Ss]ingular"):
        quick(torch.zeros(3, 3))


def test_random_numbers_are_torchs() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand_like(x)

    x = torch.zeros(3, 4)
    torch.manual_seed(1)
    wanted = noisy(x)
    torch.manual_seed(1)
    assert_close(compiled(noisy)(x), wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_dtypes(dtype: torch.dtype) -> None:
    net, x = model().eval().to(dtype), torch.randn(3, 8).to(dtype)
    with torch.no_grad():
        assert_close(compiled(net)(x), net(x), rtol=2e-2, atol=2e-2)


def test_autocast() -> None:
    net, x = model().eval(), torch.randn(3, 8)
    quick = compiled(net)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert quick(x).dtype is torch.bfloat16
        assert_close(quick(x), net(x), rtol=3e-2, atol=3e-2)


def test_inference_mode() -> None:
    net, x = model().eval(), torch.randn(3, 8)
    quick = compiled(net)
    with torch.inference_mode():
        assert_close(quick(x), net(x))
        assert_close(quick(x), net(x))


def test_unknown_options_are_refused() -> None:
    with pytest.raises(BackendCompilerFailed, match="has no option 'fast'") as caught:
        compiled(model(), options={"fast": True})(torch.randn(3, 8))
    assert isinstance(caught.value.inner_exception, ArgumentError)


def test_a_gradient_of_zeros_without_memory() -> None:
    x = torch.randn(3, dtype=torch.bfloat16, requires_grad=True)
    y: Any = torch.compile(lambda x: x * 2, backend="gptrs")(x)
    torch.sgn(y).sum().backward()  # torch passes the derivative of sgn as such
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
