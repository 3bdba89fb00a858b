"""LSTM, GRU and RNN: a scan over the steps for each layer and direction.

Operands are the input [steps, batch, inputs], first states [layers · directions, batch, hidden]
and, for each layer and direction in turn, the weights of the inputs [gates · hidden, inputs] and of
the state [gates · hidden, hidden], their biases, and the projection of an LSTM [projected, hidden].
With ``batch_first`` the batch of the input is its first axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import UnsupportedError, aten, enter_all, ptir

State = tuple[Tensor, ...]
"""h, and for an LSTM c: [batch, hidden] each."""


class Weights(NamedTuple):
    """The parameters of a layer in a direction."""

    of_input: Tensor
    of_state: Tensor
    input_bias: Tensor | None
    state_bias: Tensor | None
    projection: Tensor | None


Cell = Callable[[State, Tensor, Weights], State]
"""From the state, the product of the inputs [batch, gates · hidden] and the weights to the next
state."""


class Layers(NamedTuple):
    """The layers of a network, as torch gives them."""

    weights: Sequence[Weights]
    """Of each layer and direction in turn."""
    is_bidirectional: bool
    is_batch_first: bool


def _layers(
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Layers:
    """Raises `UnsupportedError` for dropout between the layers."""
    if train and dropout and num_layers > 1:
        raise UnsupportedError("dropout between recurrent layers")
    each = len(params) // (num_layers * (2 if bidirectional else 1))
    plain = 4 if has_biases else 2
    weights: list[Weights] = []
    for first in range(0, len(params), each):
        group = params[first : first + each]
        of_input, of_state = (group[2], group[3]) if has_biases else (None, None)
        projection = group[-1] if each > plain else None
        weights.append(Weights(group[0], group[1], of_input, of_state, projection))
    return Layers(weights, bidirectional, batch_first)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    made = ptir.matmul(x, ptir.transpose(weight))
    return made if bias is None else made + bias


def _run(x: Tensor, first: Sequence[State], layers: Layers, cell: Cell) -> tuple[Tensor, ...]:
    """The outputs of the last layer, and the last states of all: h, and c where there is one."""
    x = ptir.swapaxes(x, 0, 1) if layers.is_batch_first else x
    ways = (False, True) if layers.is_bidirectional else (False,)
    lasts: list[State] = []
    while len(lasts) < len(layers.weights):
        outputs: list[Tensor] = []
        for is_backward in ways:
            number = len(lasts)
            y, last = _direction(x, first[number], layers.weights[number], cell, is_backward)
            outputs.append(y)
            lasts.append(last)
        x = ptir.concatenate(outputs, axis=-1) if len(outputs) > 1 else outputs[0]
    x = ptir.swapaxes(x, 0, 1) if layers.is_batch_first else x
    return x, *(ptir.stack(list(each), axis=0) for each in zip(*lasts, strict=True))


def _direction(
    x: Tensor, first: State, weights: Weights, cell: Cell, is_backward: bool
) -> tuple[Tensor, State]:
    """All h [steps, batch, hidden] and the last state."""
    products = _linear(x, weights.of_input, weights.input_bias)

    def step(state: State, row: Tensor) -> tuple[State, Tensor]:
        after = cell(state, row, weights)
        return after, after[0]

    last, outputs = ptir.scan(step, first, products, reverse=is_backward)
    return outputs, last


def _lstm_cell(state: State, row: Tensor, weights: Weights) -> State:
    """c = f c + i n, h = o tanh(c), with the gates in the order i, f, n, o."""
    h, c = state
    gates = row + _linear(h, weights.of_state, weights.state_bias)
    i, f, n, o = ptir.split(gates, 4, axis=-1)
    c = ptir.sigmoid(f) * c + ptir.sigmoid(i) * ptir.tanh(n)
    h = ptir.sigmoid(o) * ptir.tanh(c)
    return h if weights.projection is None else _linear(h, weights.projection, None), c


def _gru_cell(state: State, row: Tensor, weights: Weights) -> State:
    """h = (h − n) z + n, with the gates in the order r, z and the new state n."""
    (h,) = state
    of_input = ptir.split(row, 3, axis=-1)
    of_state = ptir.split(_linear(h, weights.of_state, weights.state_bias), 3, axis=-1)
    r, z = (ptir.sigmoid(of_input[k] + of_state[k]) for k in range(2))
    n = ptir.tanh(of_input[2] + r * of_state[2])
    return ((h - n) * z + n,)


def _rnn_cell(activation: Callable[[Tensor], Tensor]) -> Cell:
    """h = f(x Wᵀ + h Rᵀ + b)."""

    def cell(state: State, row: Tensor, weights: Weights) -> State:
        return (activation(row + _linear(state[0], weights.of_state, weights.state_bias)),)

    return cell


@aten("lstm.input")
def lstm(x: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], *how: Any) -> State:
    layers = _layers(params, *how)
    first = [(hx[0][k], hx[1][k]) for k in range(len(layers.weights))]
    return _run(x, first, layers, _lstm_cell)


def _of_one_state(cell: Cell) -> Callable[..., State]:
    """A network whose state is h alone."""

    def call(x: Tensor, hx: Tensor, params: Sequence[Tensor], *how: Any) -> State:
        layers = _layers(params, *how)
        return _run(x, [(hx[k],) for k in range(len(layers.weights))], layers, cell)

    return call


enter_all(
    {
        "gru.input": _of_one_state(_gru_cell),
        "rnn_tanh.input": _of_one_state(_rnn_cell(ptir.tanh)),
        "rnn_relu.input": _of_one_state(_rnn_cell(ptir.relu)),
    }
)
