"""RNN, GRU and LSTM: a scan over the steps for each direction.

Operands are X [steps, batch, inputs], W [directions, gates · hidden, inputs], R [directions,
gates · hidden, hidden], B [directions, 2 · gates · hidden]; with ``layout`` 1 batches come first.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.onnx.operators.activations import hard_sigmoid
from gptrs.onnx.table import UnsupportedOperatorError, onnx, ptir

Step = Callable[[tuple[Tensor, ...], Tensor], tuple[Tensor, ...]]
"""From the state and the product of the inputs to the next state, whose first part is h."""

_ACTIVATIONS: dict[str, tuple[Callable[..., Tensor], float, float]] = {
    # The function, and its alpha and beta where they are not given.
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "elu": (lambda x, a, b: ptir.nn.elu(x, a), 1.0, 0.0),
    "hardsigmoid": (hard_sigmoid, 0.2, 0.5),
    "leakyrelu": (lambda x, a, b: ptir.nn.leaky_relu(x, a), 0.01, 0.0),
    "relu": (lambda x, a, b: ptir.relu(x), 0.0, 0.0),
    "scaledtanh": (lambda x, a, b: a * ptir.tanh(b * x), 1.0, 1.0),
    "sigmoid": (lambda x, a, b: ptir.sigmoid(x), 0.0, 0.0),
    "softplus": (lambda x, a, b: ptir.nn.softplus(x), 0.0, 0.0),
    "softsign": (lambda x, a, b: ptir.nn.softsign(x), 0.0, 0.0),
    "tanh": (lambda x, a, b: ptir.tanh(x), 0.0, 0.0),
    "thresholdedrelu": (lambda x, a, b: ptir.where(x > a, x, 0), 1.0, 0.0),
}
_WITH_ALPHA = ("affine", "elu", "hardsigmoid", "leakyrelu", "scaledtanh", "thresholdedrelu")
_WITH_BETA = ("affine", "hardsigmoid", "scaledtanh")


class _Layer:
    """What the three layers have in common: operands, activations, directions."""

    def __init__(
        self,
        x: Tensor,
        lengths: Tensor | None,
        hidden_size: int,
        direction: str,
        layout: int,
        clip: float | None,
        names: Sequence[str],
        alphas: Sequence[float],
        betas: Sequence[float],
    ) -> None:
        self.x = ptir.swapaxes(x, 0, 1) if layout else x
        self.lengths, self.hidden, self.layout, self.clip = lengths, hidden_size, layout, clip
        self.ways = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[
            direction
        ]
        given, more = list(alphas), list(betas)
        self.activations = [_activation(name.lower(), given, more) for name in names]

    def activation(self, way: int, number: int, x: Tensor) -> Tensor:
        """The activation ``number`` of a direction, of what is clipped."""
        each = len(self.activations) // len(self.ways)
        if self.clip is not None:
            x = ptir.clip(x, -self.clip, self.clip)
        return self.activations[way * each + number](x)

    def initial(self, state: Tensor | None, way: int) -> Tensor:
        """A part of the first state of a direction; zeros without one."""
        if state is None:
            return ptir.zeros((self.x.shape[1], self.hidden), dtype=self.x.dtype)
        return state[:, way] if self.layout else state[way]

    def run(
        self, way: int, weight: Tensor, bias: Tensor, state: tuple[Tensor, ...], step: Step
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """All h [steps, batch, hidden] and the last state of a direction."""
        products = ptir.matmul(self.x, ptir.transpose(weight)) + bias
        numbers = ptir.arange(self.x.shape[0], dtype=ptir.si32)

        def each(now: Any, row: Any) -> Any:
            after = step(now, row[0])
            if self.lengths is None:
                return after, after[0]
            is_inside = (row[1] < self.lengths)[:, None]
            kept = tuple(ptir.where(is_inside, a, n) for a, n in zip(after, now, strict=True))
            return kept, ptir.where(is_inside, after[0], 0)

        is_backward = self.ways[way]
        last, outputs = ptir.scan(each, state, (products, numbers), reverse=is_backward)
        return outputs, last

    def results(self, runs: Sequence[tuple[Tensor, tuple[Tensor, ...]]]) -> tuple[Tensor, ...]:
        """Y, and the last states, of all directions."""
        axis = 2 if self.layout else 1
        outputs = [ptir.swapaxes(y, 0, 1) if self.layout else y for y, _ in runs]
        lasts = zip(*(last for _, last in runs), strict=True)
        place = 1 if self.layout else 0
        return (
            ptir.stack(outputs, axis=axis),
            *(ptir.stack(list(each), axis=place) for each in lasts),
        )


def _activation(name: str, alphas: list[float], betas: list[float]) -> Callable[[Tensor], Tensor]:
    """An activation with its numbers, the next of those that are given."""
    if name not in _ACTIVATIONS:
        raise UnsupportedOperatorError(f"the activation {name}")
    function, alpha, beta = _ACTIVATIONS[name]
    if name in _WITH_ALPHA and alphas:
        alpha = alphas.pop(0)
    if name in _WITH_BETA and betas:
        beta = betas.pop(0)
    return lambda x: function(x, alpha, beta)


def _biases(bias: Tensor | None, way: int, like: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Those of the inputs and of the state."""
    if bias is None:
        zeros = ptir.zeros((size,), dtype=like.dtype)
        return zeros, zeros
    return bias[way, :size], bias[way, size:]


@onnx("RNN")
def rnn(
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    initial_h: Tensor | None = None,
    activations: Sequence[str] = ("Tanh", "Tanh"),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Tensor, ...]:
    """h = f(x Wᵀ + h Rᵀ + b)."""
    layer = _Layer(
        x,
        lengths,
        hidden_size or int(recurrence.shape[-1]),
        direction,
        layout,
        clip,
        activations[: 2 if direction == "bidirectional" else 1],
        activation_alpha,
        activation_beta,
    )

    def run(way: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        of_x, of_h = _biases(bias, way, x, layer.hidden)
        matrix = ptir.transpose(recurrence[way])

        def step(state: tuple[Tensor, ...], row: Tensor) -> tuple[Tensor, ...]:
            return (layer.activation(way, 0, row + ptir.matmul(state[0], matrix)),)

        start = (layer.initial(initial_h, way),)
        return layer.run(way, weight[way], of_x + of_h, start, step)

    return layer.results([run(way) for way in range(len(layer.ways))])


@onnx("GRU")
def gru(
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    initial_h: Tensor | None = None,
    activations: Sequence[str] = ("Sigmoid", "Tanh") * 2,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    layout: int = 0,
    linear_before_reset: int = 0,
    output_sequence: int = 0,
) -> tuple[Tensor, ...]:
    """h = (1 − z) n + z h, with the gates z and r and the new state n."""
    layer = _Layer(
        x,
        lengths,
        hidden_size or int(recurrence.shape[-1]),
        direction,
        layout,
        clip,
        activations[: 4 if direction == "bidirectional" else 2],
        activation_alpha,
        activation_beta,
    )
    size = layer.hidden

    def run(way: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        of_x, of_h = _biases(bias, way, x, 3 * size)
        matrix = ptir.transpose(recurrence[way])
        gates, new = matrix[:, : 2 * size], matrix[:, 2 * size :]

        def step(state: tuple[Tensor, ...], row: Tensor) -> tuple[Tensor, ...]:
            (h,) = state
            summed = row[:, : 2 * size] + ptir.matmul(h, gates) + of_h[: 2 * size]
            both = layer.activation(way, 0, summed)
            z, r = both[:, :size], both[:, size:]
            if linear_before_reset:
                inner = r * (ptir.matmul(h, new) + of_h[2 * size :])
            else:
                inner = ptir.matmul(r * h, new) + of_h[2 * size :]
            n = layer.activation(way, 1, row[:, 2 * size :] + inner)
            return ((1 - z) * n + z * h,)

        return layer.run(way, weight[way], of_x, (layer.initial(initial_h, way),), step)

    return layer.results([run(way) for way in range(len(layer.ways))])


@onnx("LSTM")
def lstm(
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    peepholes: Tensor | None = None,
    activations: Sequence[str] = ("Sigmoid", "Tanh", "Tanh") * 2,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Tensor, ...]:
    """c = f c + i n, h = o tanh(c), with the gates in the order i, o, f, n."""
    layer = _Layer(
        x,
        lengths,
        hidden_size or int(recurrence.shape[-1]),
        direction,
        layout,
        clip,
        activations[: 6 if direction == "bidirectional" else 3],
        activation_alpha,
        activation_beta,
    )
    size = layer.hidden

    def run(way: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        of_x, of_h = _biases(bias, way, x, 4 * size)
        matrix = ptir.transpose(recurrence[way])
        if peepholes is None:
            looks: list[Any] = [0, 0, 0]
        else:
            looks = [peepholes[way, i * size : (i + 1) * size] for i in range(3)]

        def step(state: tuple[Tensor, ...], row: Tensor) -> tuple[Tensor, ...]:
            h, c = state
            summed = row + ptir.matmul(h, matrix)
            i, o, f, n = (summed[:, k * size : (k + 1) * size] for k in range(4))
            i = layer.activation(way, 0, i + looks[0] * c)
            f = 1 - i if input_forget else layer.activation(way, 0, f + looks[2] * c)
            c = f * c + i * layer.activation(way, 1, n)
            o = layer.activation(way, 0, o + looks[1] * c)
            return o * layer.activations[way * 3 + 2](c), c

        start = layer.initial(initial_h, way), layer.initial(initial_c, way)
        return layer.run(way, weight[way], of_x + of_h, start, step)

    return layer.results([run(way) for way in range(len(layer.ways))])
