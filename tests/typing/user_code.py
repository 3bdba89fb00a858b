"""Typical user code for type checkers; `tests/package/test_typing.py` runs two on it."""

from dataclasses import dataclass
from typing import assert_type

import numpy as np
import numpy.typing as npt

import gptrs
from gptrs import Parameter, Tensor, nn, ptir

x = np.ones((3, 4), np.float32)


@ptir.jit
def scaled(x: Tensor, factor: Tensor) -> Tensor:
    return ptir.softmax(x * factor + 1, axis=-1)


@ptir.jit(static_argnames="steps", donate="state", dynamic={"state": {0: "N"}})
def repeated(state: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    for _ in range(steps):
        state = ptir.tanh(state @ state.T)
    return state, state.sum(axis=0, keepdims=True)


def norms(x: Tensor) -> dict[str, Tensor]:
    return {"one": ptir.abs(x).sum(), "two": ptir.pow(x, 2.0).sum(), "most": abs(x).max()}


# Whatever `jit` takes: arrays, numbers, nested lists, Tensors.
assert_type(scaled(x, 2.0), Tensor)
assert_type(scaled([[1.0, 2.0]], factor=np.float32(2)), Tensor)
assert_type(scaled(ptir.tensor(x), ptir.tensor(2.0)), Tensor)
assert_type(repeated(x, 3), tuple[Tensor, Tensor])
assert_type(ptir.jit(norms)(x), dict[str, Tensor])
print(scaled.explain(x, 2.0), scaled.program(x, 2.0), scaled.lowered(x, 2.0))

# Operators and methods.
a = ptir.tensor([[1.0, 2.0], [3.0, 4.0]])
assert_type(a, Tensor)
assert_type(1 - a / 2 + a**2, Tensor)
assert_type(a @ a, Tensor)
assert_type(a[0, None, ..., ::1], Tensor)
assert_type((a > 0) & ~(a < 1), Tensor)
assert_type(a.reshape(4, 1).astype("f16").split(2), list[Tensor])
assert_type(-a.T, Tensor)
assert_type(a.argmax(dim=1).float().clamp(0, 1).masked_fill(a > 0, 2), Tensor)
assert_type(a.real.unsqueeze(0).var(axis=1, keepdims=True).to("f16"), Tensor)
array: npt.NDArray[np.generic] = a.numpy()
same: npt.NDArray[np.generic] = np.asarray(a)

# Ops by their names in `ptir`, those of Python's builtins among them.
assert_type(ptir.round(a), Tensor)
assert_type(ptir.slice(a, starts=(0, 0), sizes=(1, 1), strides=(1, 1)), Tensor)
assert_type(ptir.concat((a, a), axis=0), Tensor)
assert_type(ptir.layer_norm(a, ptir.tensor([1.0, 1.0]), ptir.tensor([0.0, 0.0])), Tensor)
with ptir.backend("reference"), ptir.eager():
    print(ptir.gelu(a), ptir.f32, ptir.dim("N"))


@dataclass
class Mlp(nn.Module):
    """A module of the user's own."""

    up: nn.Linear
    down: nn.Linear

    @ptir.jit
    def __call__(self, x: Tensor) -> Tensor:
        return self.down(ptir.gelu(self.up(x)))


weight = Parameter(np.ones((4, 4), np.float32), "weight")
mlp = Mlp(nn.Linear(weight), nn.Linear(weight))
assert_type(mlp(x), Tensor)

model = gptrs.load("stories")
text: str = model.generate("Once upon a time", max_new_tokens=5)
estimate = gptrs.estimate_memory("stories", context=64)
assert_type(estimate.total, int)
