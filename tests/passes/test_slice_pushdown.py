"""Slice pushdown: how far slices move towards the inputs, with the same results."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.ir.dims import dim, same, same_shape
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Program, verify
from gptrs.ir.rewrite import Fuel
from gptrs.ir.types import Type, f32, si32
from gptrs.loading.random_model import write_random_model
from gptrs.passes.base import Context
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.slice_pushdown import push_slices
from tests.cases.sample import several

S = dim("S")
SIZES = {"S": 5}


def program(function: Callable[..., Any], *types: Type) -> Program:
    recorder = Recorder("f")
    params = [recorder.input(each, f"x{number}") for number, each in enumerate(types)]
    with interpreter(recorder):
        results = several(function(*params))
    return recorder.finish(results)


def pushed(before: Program, *, precise: bool = False, fuel: Fuel | None = None) -> Program:
    context = Context(ReferenceBackend(), precise=precise, fuel=fuel or Fuel())
    after = push_slices(before, context)
    verify(after)
    return eliminate_dead_code(after, context)


def shapes(found: Program) -> dict[str, Any]:
    """The shape of the last result of each op."""
    return {i.op.name: i.results[-1].type.shape for i in found.body}


def check(before: Program, after: Program, *, exact: bool = True) -> None:
    rng = np.random.default_rng(0)
    arrays: list[Any] = []
    for param in before.params:
        shape = tuple(SIZES["S"] if n is S else n for n in param.type.shape)
        whole = param.type.dtype is si32
        arrays.append(
            rng.integers(3, 6, shape).astype(np.int32)
            if whole
            else rng.standard_normal(shape, np.float32)
        )
    pairs = zip(
        ReferencePlan(before).run(arrays, SIZES),
        ReferencePlan(after).run(arrays, SIZES),
        strict=True,
    )
    for expected, found in pairs:
        if exact:
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def t(*shape: Any) -> Type:
    return Type(shape, f32)


ROWWISE: dict[str, tuple[Callable[..., Any], tuple[Type, ...]]] = {
    "add": (lambda x, y: x + y, (t(2, S, 4), t(2, S, 4))),
    "mul": (lambda x, y: x * y, (t(2, S, 4), t(4))),
    "select": (lambda x, y: ptir.select(x > y, x, 0.0), (t(2, S, 4), t(S, 1))),
    "cast": (lambda x: ptir.cast(x, dtype="f64"), (t(2, S, 4),)),
    "gelu_tanh": (ptir.gelu_tanh, (t(2, S, 4),)),
    "layer_norm": (ptir.layer_norm, (t(2, S, 4), t(4), t(4))),
    "rms_norm": (ptir.rms_norm, (t(2, S, 4), t(4))),
    "rotary": (ptir.rotary, (t(2, S, 4), t(S, 2), t(1, 2))),
    "softmax": (ptir.softmax, (t(2, S, 4),)),
    "linear": (ptir.linear, (t(2, S, 4), t(3, 4), t(3))),
    "dot_general": (
        lambda x, y: ptir.dot_general(x, y, contract_lhs=(0,), contract_rhs=(1,)),
        (t(4, 2, S), t(3, 4)),
    ),
    "matmul": (lambda x, y: x @ y, (t(2, S, 4), t(4, 3))),
    "matmul of each": (lambda x, y: ptir.matmul(x, y), (t(2, S, 4), t(2, 4, 3))),
    "transpose": (lambda x: x.permute(2, 1, 0), (t(4, S, 2),)),
    "reshape": (lambda x: x.reshape(2, S, 6), (t(2, S, 3, 2),)),
    "reduce_sum": (lambda x: ptir.reduce_sum(x, axes=(0, 3)), (t(3, 2, S, 4),)),
    "reduce_max of kept axes": (lambda x: x.max(-1, keepdims=True), (t(2, S, 4),)),
    "top_k": (lambda x: ptir.top_k(x, k=2)[0], (t(2, S, 4),)),
}


EXACT = ("add", "mul", "select", "cast", "gelu_tanh", "transpose", "reshape")
"""These do not sum."""


@pytest.mark.parametrize("name", ROWWISE)
def test_rows_that_nobody_reads_are_not_computed(name: str) -> None:
    function, types = ROWWISE[name]
    exact, name = name in EXACT, name.split()[0]
    before = program(lambda *xs: function(*xs)[:, -1:], *types)
    after = pushed(before)
    assert same(shapes(before)[name][1], S)
    assert shapes(after)[name][1] == 1
    check(before, after, exact=exact)
    assert pushed(after) is after, "nothing is left to do"


def test_a_chain_is_followed_to_its_beginning() -> None:
    def block(x: Any, w: Any, v: Any) -> Any:
        y = x + ptir.linear(ptir.gelu(ptir.linear(ptir.layer_norm(x), w)), v)
        return ptir.layer_norm(y)[:, -1:]

    before = program(block, t(2, S, 4), t(8, 4), t(4, 8))
    after = pushed(before)
    assert {i.result.type.shape[1] for i in after.body} == {1}
    assert len([i for i in after.body if i.op.name == "slice"]) <= 2  # one for each reader of x
    check(before, after, exact=False)


def test_halves_of_a_row_are_slices_of_that_row() -> None:
    """A fused projection of gate and up, of which the last row is read."""

    def gated(x: Any, w: Any) -> Any:
        both = ptir.linear(x, w)
        return (ptir.silu(both[..., :3]) * both[..., 3:])[:, -1:]

    before = program(gated, t(2, S, 4), t(6, 4))
    after = pushed(before)
    assert {i.result.type.shape[1] for i in after.body} == {1}
    check(before, after, exact=False)
    assert pushed(after) is after


def test_a_part_of_a_part() -> None:
    def parts(x: Any) -> Any:
        y = ptir.tanh(x)
        return y[:, 1:, :3][:, :, 1:] + y[:, 1:, 2:]

    before = program(parts, t(2, 5, 4))
    after = pushed(before)
    assert shapes(after)["tanh"] == (2, 4, 4)
    check(before, after)


def test_all_results_are_narrowed_alike() -> None:
    def chosen(x: Any, w: Any) -> Any:
        weights, ids = ptir.top_k(ptir.softmax(x), k=2)
        return (ptir.grouped_linear(x, ids, w) * weights.unsqueeze(-1)).sum(-2)[:, -1:]

    before = program(chosen, t(2, S, 4), t(4, 3, 4))
    after = pushed(before)
    assert {i.result.type.shape[1] for i in after.body if i.op.name != "top_k"} == {1}
    check(before, after, exact=False)


def test_readers_that_disagree_get_all_rows() -> None:
    def two(x: Any) -> Any:
        y = ptir.tanh(x)
        return y[:, -1:], y[:, :2]

    def whole(x: Any) -> Any:
        y = ptir.tanh(x)
        return y[:, -1:], y

    for function in (two, whole):
        before = program(function, t(2, S, 4))
        assert pushed(before) is before


def test_what_is_mixed_is_computed_as_a_whole() -> None:
    for function in (
        lambda x: ptir.softmax(x, axis=1)[:, -1:],
        lambda x: ptir.layer_norm(x)[:, :, :2],
        lambda x: x.reshape(2, S * 4)[:, :4],
        lambda x: ptir.cumsum(x, axis=1)[:, -1:],
        lambda x: ptir.tanh(x)[:, ::2],
    ):
        before = program(function, t(2, S, 4))
        assert pushed(before) is before


def attend(**options: Any) -> Callable[..., Any]:
    return lambda q, k, v, end: ptir.attention(q, k, v, None, end, **options)


KEYS = (t(1, 2, S, 4), t(1, 2, 6, 4), t(1, 2, 6, 4), Type((1,), si32))


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"causal": True, "window": 2}])
def test_the_last_queries_stand_where_they_stood(options: dict[str, Any]) -> None:
    before = program(lambda *xs: attend(**options)(*xs)[:, :, -2:], *KEYS)
    after = pushed(before)
    assert shapes(after)["attention"][2] == 2
    check(before, after, exact=False)


def test_nothing_of_an_axis_of_one() -> None:
    before = program(lambda x, y: (ptir.tanh(x) + y)[:, 1:], t(2, 1, 4), t(4))
    check(before, pushed(before))
    sizes = [i.result.type.shape for i in pushed(before).body if i.op.name in ("tanh", "add")]
    assert sizes == [(2, 0, 4)] * 2


def test_nothing_of_an_axis_that_is_reduced() -> None:
    """An axis of 1 that a reduction keeps has no rows of its operand."""
    before = program(lambda x: x.min(0, keepdims=True)[:0, :0], t(8, 1, S))
    assert pushed(before).results[0].type.shape == (0, 0, before.params[0].type.shape[-1])


def test_other_queries_would_stand_elsewhere() -> None:
    before = program(lambda *xs: attend(causal=True)(*xs)[:, :, :2], *KEYS)
    assert pushed(before) is before
    free = program(lambda *xs: attend()(*xs)[:, :, :2], *KEYS)
    assert shapes(pushed(free))["attention"][2] == 2
    check(free, pushed(free), exact=False)


def test_a_precise_program_keeps_its_sums() -> None:
    for name, (function, types) in ROWWISE.items():
        before = program(lambda *xs, f=function: f(*xs)[:, -1:], *types)
        after = pushed(before, precise=True)
        if name in EXACT:
            assert shapes(after)[name][1] == 1
            check(before, after)
        else:
            assert after is before


def test_each_instruction_takes_fuel() -> None:
    before = program(lambda x: ptir.exp(ptir.tanh(x))[:, -1:], t(2, S, 4))
    fuel = Fuel(1)
    after = pushed(before, fuel=fuel)
    assert fuel.log == ["narrow exp"]
    assert same(shapes(after)["tanh"][1], S)
    check(before, after)
    assert pushed(before, fuel=Fuel(0)) is before


def test_one_value_as_both_operands() -> None:
    before = program(lambda x: (x @ x)[-1:], t(4, 4))
    assert pushed(before) is before
    twice = program(lambda x: (x + x)[-1:], t(4, 4))
    check(twice, pushed(twice))
    assert shapes(pushed(twice))["add"][0] == 1


@pytest.mark.slow
def test_the_last_layer_of_gpt2_computes_one_token() -> None:
    module = gptrs.load("stories").module
    call: Any = type(module).__call__
    tokens = np.array([[5, 6, 7, 8]])
    cache = module.init_cache(np.zeros(1, np.int32), 8)
    lowered = call.lowered(module, tokens, cache, logits="last")
    calls = [i for i in lowered.body if i.op.name == "custom_call"]
    # The last layer from attention on: attention, product, norm, two products, norm, head.
    tail = [i.result.type.shape for i in calls[-7:]]
    assert all(same(shape[2 if len(shape) == 4 else 1], 1) for shape in tail)
    assert not same(calls[-8].result.type.shape[1], 1), "keys and values are of all tokens"
    every, _ = module(tokens)
    one, _ = module(tokens, cache, logits="last")
    np.testing.assert_array_equal(one.numpy(), every.numpy()[:, -1:])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma2", "phi3", "mixtral"])
def test_the_last_layer_of_a_decoder_computes_one_token(kind: str, tmp_path: Path) -> None:
    """All but its keys and values is of the last tokens of a left-padded batch alone, whose logits
    have the bits that they have among those of all tokens."""
    config = tmp_path / "config.json"
    fields: dict[str, Any] = {"head_dim": 8, "pad_token_id": 0}
    fields |= {"sliding_window": 4} if kind == "gemma2" else {}
    fields |= {"vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "model_type": kind}
    fields |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    config.write_text(json.dumps({**fields, "max_position_embeddings": 64}))
    write_random_model(config, tmp_path / "model")
    module = gptrs.load(tmp_path / "model").module
    call: Any = type(module).__call__
    tokens = np.random.default_rng(0).integers(3, 40, (2, 7))

    def cache() -> Any:
        return module.init_cache(np.array([0, 3], np.int32), 8)

    lowered = call.lowered(module, tokens, cache(), logits="last")
    calls = [i for i in lowered.body if i.op.name == "custom_call"]
    after = next(n for n in reversed(range(len(calls))) if "attention" in calls[n].attrs["target"])
    results = [call.results[0].type.shape for call in calls[after:]]
    products = [shape for shape in results if len(shape) == 3]
    assert products
    assert all(same(shape[1], 1) for shape in products)
    read: Any = calls[after].operands[0]
    assert any(same_shape(value.type.shape[2:], (1, 8)) for value in read), "one row of queries"
    every, _ = module(tokens, cache())
    one, _ = module(tokens, cache(), logits="last")
    np.testing.assert_array_equal(one.numpy(), every.numpy()[:, -1:])
