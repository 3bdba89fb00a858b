"""Layers of neural networks, images as [N, H, W, C]."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.npbench.kernel import Kernel, of_shapes


def _relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0)


def _softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def _conv2d(xp: Any, image: Any, weights: Any) -> Any:
    size = weights.shape[0]
    rows, columns = image.shape[1] - size + 1, image.shape[2] - size + 1
    output = xp.empty((image.shape[0], rows, columns, weights.shape[3]), dtype=image.dtype)
    for i in range(rows):
        for j in range(columns):
            output[:, i, j, :] = xp.sum(
                image[:, i : i + size, j : j + size, :, xp.newaxis] * weights[xp.newaxis, :, :, :],
                axis=(1, 2, 3),
            )
    return output


def _maxpool2d(xp: Any, x: Any) -> Any:
    rows, columns = x.shape[1] // 2, x.shape[2] // 2
    output = xp.empty([x.shape[0], rows, columns, x.shape[3]], dtype=x.dtype)
    for i in range(rows):
        for j in range(columns):
            output[:, i, j, :] = xp.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return output


def conv2d_bias(xp: Any, image: Any, weights: Any, bias: Any) -> Any:
    return _conv2d(xp, image, weights) + bias


def softmax(xp: Any, x: Any) -> Any:
    return _softmax(xp, x)


def mlp(xp: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    x = _relu(xp, x @ w1 + b1)
    x = _relu(xp, x @ w2 + b2)
    return _softmax(xp, x @ w3 + b3)


def lenet(xp: Any, x: Any, conv1: Any, bias1: Any, conv2: Any, bias2: Any, w1: Any, b1: Any) -> Any:
    x = _maxpool2d(xp, _relu(xp, _conv2d(xp, x, conv1) + bias1))
    x = _maxpool2d(xp, _relu(xp, _conv2d(xp, x, conv2) + bias2))
    x = xp.reshape(x, (x.shape[0], w1.shape[0]))
    return x @ w1 + b1


def _normalised(xp: Any, x: Any) -> Any:
    mean = xp.mean(x, axis=0, keepdims=True)
    return (x - mean) / xp.sqrt(xp.std(x, axis=0, keepdims=True) + 1e-5)


def resnet(xp: Any, x: Any, conv1: Any, conv2: Any, conv3: Any) -> Any:
    padded = xp.zeros((x.shape[0], x.shape[1] + 2, x.shape[2] + 2, conv1.shape[3]), dtype=x.dtype)
    padded[:, 1:-1, 1:-1, :] = _conv2d(xp, x, conv1)
    y = _relu(xp, _normalised(xp, padded))
    y = _relu(xp, _normalised(xp, _conv2d(xp, y, conv2)))
    y = _normalised(xp, _conv2d(xp, y, conv3))
    return _relu(xp, y + x)


KERNELS: list[Kernel] = [
    of_shapes(conv2d_bias, (2, 5, 5, 3), (3, 3, 3, 4), (4,), dtype=np.float32),
    of_shapes(softmax, (2, 3, 4, 4), dtype=np.float32),
    of_shapes(mlp, (4, 5), (5, 6), (6,), (6, 7), (7,), (7, 3), (3,), dtype=np.float32),
    of_shapes(
        lenet,
        (2, 10, 10, 1),
        (3, 3, 1, 2),
        (2,),
        (3, 3, 2, 3),
        (3,),
        (3, 4),
        (4,),
        dtype=np.float32,
    ),
    of_shapes(resnet, (3, 4, 4, 5), (1, 1, 5, 2), (3, 3, 2, 2), (1, 1, 2, 5), dtype=np.float32),
]
