"""Custom calls that are equal but for their weights: one match, and each has its own operands."""

from __future__ import annotations

import numpy as np

from gptrs import ptir
from gptrs.backends.faer.matched_calls import CallMatcher, definition_key
from gptrs.ir.ops.custom import custom_call
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Instruction
from gptrs.ir.tensor import Tensor

RANDOM = np.random.default_rng(0)
WEIGHTS = [Parameter(RANDOM.normal(size=(6, 6)).astype(np.float32), f"w{n}") for n in range(3)]
WIDE = Parameter(RANDOM.normal(size=(6, 8)).astype(np.float32), "wide")
X = RANDOM.normal(size=(5, 6)).astype(np.float32)


@ptir.jit
def layers(x: Tensor) -> Tensor:
    for weight in WEIGHTS:
        x = ptir.tanh(x @ weight)
    return x @ WIDE


def calls() -> list[Instruction]:
    return [i for i in layers.lowered(X).body if i.op is custom_call]


def test_equal_definitions_share_a_match() -> None:
    matcher, found = CallMatcher(), calls()
    first, second, third, wide = map(matcher.of, found)
    assert first is second is third
    assert wide.call is not first.call
    assert [*second.among(found[1]).values()] == [*found[1].values(), *found[1].results]


def test_definitions_are_compared_by_structure() -> None:
    keys = [definition_key(i.attrs["definition"]) for i in calls()]
    assert len(set(keys)) == 2


def test_each_call_reads_its_own_weight() -> None:
    expected = X
    for weight in WEIGHTS:
        expected = np.tanh(expected @ weight.numpy())
    np.testing.assert_allclose(layers(X).numpy(), expected @ WIDE.numpy(), rtol=1e-5)
