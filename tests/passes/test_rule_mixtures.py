"""All exact rules together on random programs: no bit changes, and rewriting terminates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import PtirError
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Program
from gptrs.ir.rewrite import Fuel, apply_rules
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type
from gptrs.passes.rules import EXACT_RULES, RULES
from tests.support.marks import slow_unless
from tests.support.rule_samples import apply, assert_same_results

_UNARY = ("neg", "abs", "floor", "sqrt", "reciprocal", "rsqrt", "logical_not", "bit_not", "sign")
_BINARY = (
    *("add", "sub", "mul", "div", "maximum", "minimum", "bit_and", "bit_xor", "logical_and"),
    *("logical_or", "less", "less_equal", "greater", "equal", "not_equal"),
)
_REDUCE = ("reduce_sum", "reduce_max", "reduce_min", "reduce_any", "reduce_all")
_NUMBERS = (0, 1, -1, 2, 0.0, -0.0, 1.0, 0.5, True, False)
SEEDS = [pytest.param(seed, id=str(seed), marks=slow_unless(seed < 15)) for seed in range(150)]
_TYPES = ("f32[2,3]", "f32[3]", "f32[1]", "si32[2,3]", "si32[2,1]", "i1[2,3]", "bf16[3,2]")


class _Writer:
    """Adds one random instruction after the other to a program."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.recorder = Recorder("mixture")
        self.values: list[Tensor] = [
            self.recorder.input(Type.parse(text), f"x{i}") for i, text in enumerate(_TYPES)
        ]
        self.ways: list[Callable[[], Any]] = [
            self.unary, self.binary, self.binary, self.number, self.select, self.cast,
            self.transpose, self.reshape, self.broadcast, self.slice, self.concat, self.pad,
            self.reduce,
        ]  # fmt: skip

    def pick(self, things: Any) -> Any:
        return things[int(self.rng.integers(len(things)))]

    def value(self) -> Tensor:
        """One of the values, most often a late one."""
        return self.values[-1 - int(self.rng.integers(min(len(self.values), 8)))]

    def operator(self, x: Tensor) -> Any:
        """A binary op; integers are not divided, as that may be an error."""
        return OPS[self.pick([op for op in _BINARY if op != "div" or x.dtype.is_float])]

    def unary(self) -> Any:
        return OPS[self.pick(_UNARY)](self.value())

    def binary(self) -> Any:
        x = self.value()
        fitting = [v for v in self.values if v.dtype is x.dtype]
        return self.operator(x)(x, self.pick(fitting))

    def number(self) -> Any:
        x = self.value()
        return self.operator(x)(*[x, self.pick(_NUMBERS)][:: self.pick((1, 1, -1))])

    def select(self) -> Any:
        x = self.value()
        masks = [v for v in self.values if v.dtype.is_bool]
        fitting = [v for v in self.values if v.dtype is x.dtype]
        return ptir.select(self.pick(masks), x, self.pick((self.pick(fitting), x)))

    def cast(self) -> Any:
        return OPS["cast"](self.value(), dtype=self.pick(("f32", "bf16", "si32", "i1", "f64")))

    def transpose(self) -> Any:
        x = self.value()
        return ptir.transpose(x, perm=tuple(int(i) for i in self.rng.permutation(x.ndim)))

    def reshape(self) -> Any:
        x = self.value()
        shape = self.pick(((-1,), (1, *x.shape), (*x.shape, 1), (*x.shape[:1], 1, *x.shape[1:])))
        return ptir.reshape(x, shape=shape)

    def broadcast(self) -> Any:
        x = self.value()
        grown = tuple(self.pick((n, 2)) if n == 1 else n for n in x.shape)
        return ptir.broadcast_to(x, shape=self.pick((grown, (2, *grown), (1, *x.shape))))

    def slice(self) -> Any:
        x = self.value()
        starts = tuple(int(self.rng.integers(int(n) + 1)) for n in x.shape)
        sizes = tuple(int(self.rng.integers(int(n) - b + 1)) for n, b in zip(x.shape, starts))  # noqa: B905
        return ptir.slice(x, starts=starts, sizes=sizes)

    def concat(self) -> Any:
        x = self.value()
        fitting = [v for v in self.values if v.type == x.type]
        return ptir.concat((x, self.pick(fitting)), axis=self.pick(range(max(x.ndim, 1))))

    def pad(self) -> Any:
        x = self.value()
        low, high = ([self.pick((0, 0, 1)) for _ in x.shape] for _ in range(2))
        return ptir.pad(x, low=tuple(low), high=tuple(high), value=0)

    def reduce(self) -> Any:
        x = self.value()
        axes = tuple(i for i in range(x.ndim) if self.rng.random() < 0.5)
        return OPS[self.pick(_REDUCE)](x, axes=axes, keepdims=bool(self.pick((0, 1))))

    def program(self, length: int) -> Program:
        with interpreter(self.recorder):
            while len(self.recorder.body) < length:
                try:
                    made = self.pick(self.ways)()
                except (PtirError, IndexError):
                    continue  # the op takes no such operand
                if all(int(n) <= 12 for n in made.shape) and made.ndim <= 5:
                    self.values.append(made)
        return self.recorder.finish(self.values[-6:])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mixture_of_ops_keeps_its_bits(seed: int) -> None:
    before = _Writer(seed).program(40)
    assert_same_results(before, apply(before, *EXACT_RULES))


@pytest.mark.parametrize("seed", SEEDS)
def test_rules_settle_on_a_mixture(seed: int) -> None:
    after = apply(_Writer(seed).program(40), *RULES)
    log = ["the first time"]
    for _ in range(8):  # what is no longer read lets rules apply that need to be alone
        fuel = Fuel()
        after = apply(apply_rules(after, RULES, fuel))
        log = fuel.log
    assert log == []
