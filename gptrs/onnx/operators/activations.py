"""Activations, softmax and dropout."""

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.onnx.operators.broadcasting import along
from gptrs.onnx.table import UnsupportedOperatorError, enter_all, onnx, ptir

enter_all(
    {
        "HardSwish": ptir.nn.hardswish,
        "Mish": ptir.nn.mish,
        "Relu": ptir.relu,
        "Sigmoid": ptir.sigmoid,
        "Softplus": ptir.nn.softplus,
        "Softsign": ptir.nn.softsign,
    }
)


@onnx("Elu")
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    return ptir.nn.elu(x, alpha)


@onnx("Celu")
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    return ptir.nn.celu(x, alpha)


@onnx("Selu")
def selu(
    x: Tensor, alpha: float = 1.6732632423543772848, gamma: float = 1.0507009873554804934
) -> Tensor:
    """``gamma · x`` where x is positive, else ``gamma · alpha · (eˣ − 1)``."""
    return gamma * ptir.nn.elu(x, alpha)


@onnx("LeakyRelu")
def leaky_relu(x: Tensor, alpha: float = 0.01) -> Tensor:
    return ptir.nn.leaky_relu(x, alpha)


@onnx("ThresholdedRelu")
def thresholded_relu(x: Tensor, alpha: float = 1.0) -> Tensor:
    return ptir.where(x > alpha, x, 0)


@onnx("HardSigmoid")
def hard_sigmoid(x: Tensor, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return ptir.clip(alpha * x + beta, 0, 1)


@onnx("Gelu")
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return ptir.nn.gelu(x, approximate)


@onnx("Swish")
def swish(x: Tensor, alpha: float = 1.0) -> Tensor:
    return x * ptir.sigmoid(alpha * x)


@onnx("Shrink")
def shrink(x: Tensor, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    """Towards zero by ``bias``; zero within ``lambd`` of it."""
    made = ptir.where(x < -lambd, x + bias, ptir.where(x > lambd, x - bias, 0))
    return ptir.astype(made, x.dtype)


@onnx("PRelu", since=7)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    return ptir.where(x < 0, x * slope, x)


@onnx("PRelu", until=6)
def prelu_of_channels(x: Tensor, slope: Tensor) -> Tensor:
    """With one slope for each channel."""
    return prelu(x, along(slope, x.ndim, 1))


@onnx("Softmax", since=13)
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    return ptir.softmax(x, axis=axis)


@onnx("LogSoftmax", since=13)
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    return ptir.log_softmax(x, axis=axis)


@onnx("Hardmax", since=13)
def hardmax(x: Tensor, axis: int = -1) -> Tensor:
    """1 at the first greatest element along ``axis``, else 0."""
    first = ptir.argmax(x, axis=axis, keepdims=True)
    places = ptir.reshape(
        ptir.arange(x.shape[axis]), [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    )
    return ptir.astype(ptir.equal(places, first), x.dtype)


def _of_rows(function: Any) -> Any:
    """``function`` as before opset 13: of the matrix that x is when it is cut before ``axis``."""

    def call(x: Tensor, axis: int = 1) -> Tensor:
        rows = math.prod(x.shape[: axis % x.ndim])
        return ptir.reshape(function(ptir.reshape(x, (rows, -1))), x.shape)

    return call


onnx("Softmax", until=12)(_of_rows(softmax))
onnx("LogSoftmax", until=12)(_of_rows(log_softmax))
onnx("Hardmax", until=12)(_of_rows(hardmax))


@onnx("Dropout", known=("ratio", "training_mode"))
def dropout(
    x: Tensor,
    ratio: Any = 0.5,
    training_mode: Any = None,
    seed: int = 0,
    is_test: int = 1,
    consumed_inputs: Any = None,
) -> tuple[Tensor, Tensor]:
    """``x`` as it is, and a mask of ones. Training with a ratio is refused."""
    trains = training_mode is not None and bool(training_mode)
    if trains and ratio is not None and float(ratio):
        raise UnsupportedOperatorError("Dropout in training")
    return x, ptir.ones(x.shape, dtype=bool)
