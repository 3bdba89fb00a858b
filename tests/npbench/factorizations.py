"""Factorisations and triangular solves, written out."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.npbench.kernel import Arguments, Kernel, of_shapes

N = 6


def cholesky(xp: Any, a: Any) -> Any:
    a[0, 0] = xp.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= xp.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= xp.dot(a[i, :i], a[i, :i])
        a[i, i] = xp.sqrt(a[i, i])
    return a


def cholesky2(xp: Any, a: Any) -> Any:
    a[:] = xp.linalg.cholesky(a) + xp.triu(a, k=1)
    return a


def lu(xp: Any, a: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def ludcmp(xp: Any, a: Any, b: Any) -> Any:
    x, y = xp.zeros_like(b), xp.zeros_like(b)
    a = lu(xp, a)
    n = a.shape[0]
    for i in range(n):
        y[i] = b[i] - a[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x, y


def durbin(xp: Any, r: Any) -> Any:
    y = xp.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + xp.dot(xp.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * xp.flip(y[:k])
        y[k] = alpha
    return y


def gramschmidt(xp: Any, a: Any) -> Any:
    q, r = xp.zeros_like(a), xp.zeros((a.shape[1], a.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        norm = xp.dot(a[:, k], a[:, k])
        r[k, k] = xp.sqrt(norm)
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = xp.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


def trisolv(xp: Any, lower: Any, x: Any, b: Any) -> Any:
    for i in range(x.shape[0]):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return x


def _definite(rng: np.random.Generator) -> Arguments:
    a = rng.random((N, N))
    return (a @ a.T + N * np.eye(N),)


def _definite_and_right(rng: np.random.Generator) -> Arguments:
    return (*_definite(rng), rng.random(N))


def _triangular(rng: np.random.Generator) -> Arguments:
    return np.tril(rng.random((N, N))) + np.eye(N), rng.random(N), rng.random(N)


KERNELS: list[Kernel] = [
    Kernel(cholesky, _definite),
    Kernel(cholesky2, _definite),
    Kernel(lu, _definite),
    Kernel(ludcmp, _definite_and_right),
    of_shapes(durbin, (N,)),
    of_shapes(gramschmidt, (7, 5)),
    Kernel(trisolv, _triangular),
]
