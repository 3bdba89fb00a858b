"""cond, while_loop and scan over Python functions: eager mode, reference and faer agree."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs import ptir, tree
from gptrs.ir.program import Instruction, Program, verify
from gptrs.ir.tensor import Tensor
from gptrs.nn.module import Module
from tests.cases.programs import assert_round_trip, retrace
from tests.support.lazy_torch import torch

X = np.linspace(-1, 3, 6, dtype=np.float32).reshape(2, 3)
FLAGS = [np.bool_(True), np.bool_(False)]


def modes(function: Callable[..., Any], **options: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """``function`` as it runs in each way."""
    yield "plain", function

    def eagerly(*args: Any) -> Any:
        with ptir.eager():
            return ptir.jit(**options)(function)(*args)

    yield "eager", eagerly
    for backend in ("reference", "faer"):
        yield backend, ptir.jit(backend=backend, **options)(function)


def leaves(value: Any) -> list[Any]:
    found, _ = tree.flatten(value)
    return [leaf.numpy() if isinstance(leaf, Tensor) else leaf for leaf in found]


def agree(function: Callable[..., Any], *args: Any, rtol: float = 1e-6) -> Any:
    """What ``function`` returns, after all ways to run it gave values and dtypes that agree."""
    results = {
        name: run(*[ptir.tensor(a) if isinstance(a, np.ndarray) else a for a in args])
        for name, run in modes(function)
    }
    first = results["plain"]
    for name, result in results.items():
        pairs = zip(leaves(result), leaves(first), strict=True)
        for found, expected in pairs:
            if isinstance(expected, np.ndarray):
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
                np.testing.assert_allclose(found, expected, rtol=rtol, err_msg=name)
            else:
                assert found == expected, name
    return first


def controls(program: Program) -> list[Instruction]:
    return [i for i in program.body if i.op.control]


@pytest.mark.parametrize("flag", FLAGS)
def test_cond_runs_one_branch(flag: Any) -> None:
    def function(flag: Any, x: Any) -> Any:
        return ptir.cond(flag, lambda a, b: (a + b, a), lambda a, b: (a - b, b), x, x * 2)

    total, kept = agree(function, flag, X)
    np.testing.assert_array_equal(total.numpy(), X * 3 if flag else -X)
    np.testing.assert_array_equal(kept.numpy(), X if flag else X * 2)


def test_cond_on_a_python_bool_is_an_instruction_too() -> None:
    for flag in (True, False):
        assert agree(lambda x, f=flag: ptir.cond(f, lambda: x + 1, lambda: x), X[0]) is not None


@pytest.mark.slow
def test_while_loop_against_python() -> None:
    def steps(n: Any) -> Any:
        def body(state: Any) -> Any:
            n, count = state
            half, other = n // 2, n * 3 + 1
            return ptir.select(ptir.equal(n % 2, 0), half, other), count + 1

        return ptir.while_loop(lambda s: s[0] > 1, body, (n, 0))

    for start in (1, 2, 7, 27):
        n, expected = start, 0
        while n > 1:
            n, expected = (n // 2 if n % 2 == 0 else n * 3 + 1), expected + 1
        last, count = agree(steps, start)
        assert (last.item(), count.item()) == (n, expected)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_against_torch(reverse: bool) -> None:
    def function(x: Any) -> Any:
        return ptir.scan(lambda s, row: (s + row, s + row), x[0] * 0, x, reverse=reverse)

    total, sums = agree(function, X)
    ordered = torch.from_numpy(X[::-1].copy() if reverse else X)
    expected = torch.cumsum(ordered, 0).numpy()
    np.testing.assert_allclose(total.numpy(), expected[-1], rtol=1e-6)
    np.testing.assert_allclose(sums.numpy(), expected[::-1] if reverse else expected, rtol=1e-6)


def test_scan_with_a_length_counts_only() -> None:
    def powers(x: Any) -> Any:
        return ptir.scan(lambda s, _: (s * x, {"square": s * s, "none": None}), 1.0, length=4)

    last, ys = agree(powers, np.array(2, np.float32))
    assert last.item() == 16
    assert ys["none"] is None
    assert ys["square"].tolist() == [1, 4, 16, 64]


def test_scan_without_state_or_without_outputs() -> None:
    nothing, doubled = agree(lambda x: ptir.scan(lambda s, r: (s, r * 2), (), x), X)
    assert nothing == ()
    np.testing.assert_array_equal(doubled.numpy(), X * 2)
    total, none = agree(lambda x: ptir.scan(lambda s, r: (s + r.sum(), None), 0, x), X)
    assert none is None
    np.testing.assert_allclose(total.numpy(), X.sum(), atol=1e-6)
    assert agree(lambda x: ptir.scan(lambda s, r: (s, None), (), x), X) == ((), None)


def test_scan_over_nothing() -> None:
    def function(x: Any) -> Any:
        return ptir.scan(lambda s, row: (s + row, (row.sum(), row > 0)), x.sum(axis=0), x)

    last, (sums, signs) = agree(function, np.zeros((0, 3), np.float32))
    assert last.tolist() == [0, 0, 0]
    assert str(sums.type) == "f32[0]"
    assert str(signs.type) == "i1[0,3]"


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Box:
    content: Any
    label: str = "kept"


def test_states_are_trees() -> None:
    def function(x: Any) -> Any:
        def body(state: Any) -> Any:
            box, pair = state["box"], state["pair"]
            assert box.label == "kept"
            assert pair.right is None
            return {"box": Box(box.content + x), "pair": Pair([pair.left[0] + 1], None)}

        return ptir.while_loop(
            lambda s: s["pair"].left[0] < 3, body, {"box": Box(x), "pair": Pair([0], None)}
        )

    state = agree(function, X)
    assert isinstance(state["box"], Box)
    assert isinstance(state["pair"], Pair)
    np.testing.assert_allclose(state["box"].content.numpy(), X * 4, rtol=1e-6)


def test_nested_loops_read_through_all_levels() -> None:
    def function(x: Any, n: Any) -> Any:
        shift = x.sum()

        def outer(state: Any) -> Any:
            i, total = state

            def inner(s: Any, row: Any) -> Any:
                signed = ptir.cond(i % 2 == 0, lambda r: r + shift, lambda r: r * i - shift, row)
                return s + signed * x[0], signed

            total, rows = ptir.scan(inner, total, x)
            return i + 1, total + rows.sum(axis=0)

        return ptir.while_loop(lambda s: s[0] < n, outer, (0, x[1] * 0))

    x, total = X, np.zeros(3, np.float32)
    for i in range(3):
        rows = [row + X.sum() if i % 2 == 0 else row * i - X.sum() for row in x]
        total = total + sum(row * X[0] for row in rows) + np.sum(rows, axis=0)
    _, found = agree(function, X, 3, rtol=1e-5)
    np.testing.assert_allclose(found.numpy(), total, rtol=1e-5, atol=1e-6)


def test_a_value_read_twice_is_one_operand() -> None:
    @ptir.jit
    def function(x: Any) -> Any:
        y = x * 2
        return ptir.cond(x.sum() > 0, lambda: y + y * x, lambda: y - x)

    (instruction,) = controls(function.program(X))
    assert [len(region.params) for region in instruction.regions()] == [2, 2]
    assert len(list(instruction.values())) == 3  # the predicate, y and x


def test_captured_arrays_are_constants_of_the_region() -> None:
    captured = np.ones(3, np.float32)
    function = ptir.jit(lambda x: ptir.while_loop(lambda s: s.sum() < 9, lambda s: s + captured, x))
    program = function.program(X[0])
    (loop,) = controls(program)
    assert not any(i.op.name == "constant" for i in program.body)
    assert any(i.op.name == "constant" for i in loop.attrs["body"].body)
    assert function(X[0] * 0).tolist() == [3, 3, 3]
    captured[:] = 2
    assert function(X[0] * 0).tolist() == [4, 4, 4]


@pytest.mark.parametrize("backend", ["reference", "faer"])
def test_results_are_memory_of_nobody_else(backend: str) -> None:
    constant = np.ones(3, np.float32)

    @ptir.jit(backend=backend)
    def function(flag: Any, x: Any) -> Any:
        kept = ptir.while_loop(lambda s: s.sum() > 1e9, lambda s: s + 1, x)
        return ptir.cond(flag, lambda: constant, lambda: x), kept, ptir.scan(_same, x, length=2)

    for flag in FLAGS:
        x = X[0].copy()
        for leaf in leaves(function(flag, x)):
            leaf[:] = 77  # what nobody else has can be written into
        assert x.tolist() == X[0].tolist()
        assert function(flag, x)[0].tolist() == (constant if flag else x).tolist()


def _same(state: Any, _: None) -> Any:
    return state, state


class Cell(Module):
    """An Elman cell as torch has it."""

    weight_ih: Any
    weight_hh: Any
    bias: Any
    scale: float = 1.0

    def __call__(self, x: Any, h: Any) -> Any:
        return ptir.tanh(x @ self.weight_ih.T + h @ self.weight_hh.T + self.bias) * self.scale


def test_a_recurrent_network_against_torch() -> None:
    torch.manual_seed(0)
    network = torch.nn.RNN(4, 5)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    ih, hh, bias, other = (getattr(network, name).detach().numpy() for name in names)
    cell = Cell(ptir.Parameter(ih, "ih"), ptir.Parameter(hh, "hh"), ptir.Parameter(bias + other))

    def function(xs: Any, h: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            new = cell(x, h)
            return new, new

        return ptir.scan(step, h, xs)

    xs = torch.randn(7, 2, 4)
    expected, last = network(xs)
    state, ys = agree(function, xs.numpy(), np.zeros((2, 5), np.float32), rtol=1e-4)
    np.testing.assert_allclose(ys.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state.numpy(), last[0].detach().numpy(), rtol=1e-4, atol=1e-6)


def test_layers_stacked_in_one_module_are_scanned() -> None:
    rng = np.random.default_rng(0)
    ih, hh, bias = (rng.normal(size=(3, *s)).astype("f4") for s in ((5, 5), (5, 5), (5,)))
    stacked = Cell(ih, hh, bias, 0.5)

    def function(h: Any) -> Any:
        return ptir.scan(lambda h, layer: (layer(h, h), layer.scale), h, stacked)

    h = rng.normal(size=(2, 5)).astype(np.float32)
    last, scales = agree(function, h, rtol=1e-4)
    for n in range(3):
        one = Cell(stacked.weight_ih[n], stacked.weight_hh[n], stacked.bias[n], 0.5)
        h = one(ptir.tensor(h), ptir.tensor(h)).numpy()
    np.testing.assert_allclose(last.numpy(), h, rtol=1e-4)
    assert scales.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.slow
def test_the_text_is_a_program_that_runs() -> None:
    def function(x: Any, n: Any) -> Any:
        k = x.sum()
        a = ptir.cond(n > 2, lambda: k, lambda: k * 2)
        (i, b), ys = ptir.scan(lambda s, r: ((s[0] + 1, s[1] + r * k), s[0]), (0, x[0]), x)
        return a, i, b, ys, ptir.while_loop(lambda s: s < n, lambda s: s + i, n * 0)

    program = ptir.jit(function).program(X, 3)
    verify(program)
    read = assert_round_trip(program)
    assert str(retrace(str(program))) == str(read)
    for backend in ("reference", "faer"):
        again = ptir.jit(backend=backend)(function)
        for found, expected in zip(leaves(again(X, 3)), leaves(function(X, 3)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert_round_trip(again.lowered(X, 3))
