"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

from tests.npbench.kernel import Kernel, of_shapes

ALPHA, BETA = 1.5, 1.2


def gemm(xp: Any, c: Any, a: Any, b: Any) -> Any:
    c[:] = ALPHA * a @ b + BETA * c
    return c


def k2mm(xp: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    d[:] = ALPHA * a @ b @ c + BETA * d
    return d


def k3mm(xp: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return a @ b @ c @ d


def atax(xp: Any, a: Any, x: Any) -> Any:
    return (a @ x) @ a


def bicg(xp: Any, a: Any, p: Any, r: Any) -> Any:
    return r @ a, a @ p


def mvt(xp: Any, x1: Any, x2: Any, y1: Any, y2: Any, a: Any) -> Any:
    x1 += a @ y1
    x2 += y2 @ a
    return x1, x2


def gemver(
    xp: Any, a: Any, u1: Any, v1: Any, u2: Any, v2: Any, w: Any, x: Any, y: Any, z: Any
) -> Any:
    a += xp.outer(u1, v1) + xp.outer(u2, v2)
    x += BETA * y @ a + z
    w += ALPHA * a @ x
    return a, x, w


def gesummv(xp: Any, a: Any, b: Any, x: Any) -> Any:
    return ALPHA * a @ x + BETA * b @ x


def doitgen(xp: Any, a: Any, c4: Any) -> Any:
    rows, columns, depth = a.shape
    a[:] = xp.reshape(xp.reshape(a, (rows, columns, 1, depth)) @ c4, (rows, columns, depth))
    return a


def symm(xp: Any, c: Any, a: Any, b: Any) -> Any:
    others = xp.empty(c.shape[1], dtype=c.dtype)
    c *= BETA
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[:i, j] += ALPHA * b[i, j] * a[i, :i]
            others[j] = b[:i, j] @ a[i, :i]
        c[i, :] += ALPHA * b[i, :] * a[i, i] + ALPHA * others
    return c


def syrk(xp: Any, c: Any, a: Any) -> Any:
    for i in range(a.shape[0]):
        c[i, : i + 1] *= BETA
        for k in range(a.shape[1]):
            c[i, : i + 1] += ALPHA * a[i, k] * a[: i + 1, k]
    return c


def syr2k(xp: Any, c: Any, a: Any, b: Any) -> Any:
    for i in range(a.shape[0]):
        c[i, : i + 1] *= BETA
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[: i + 1, k] * ALPHA * b[i, k] + b[: i + 1, k] * ALPHA * a[i, k]
    return c


def trmm(xp: Any, a: Any, b: Any) -> Any:
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += xp.dot(a[i + 1 :, i], b[i + 1 :, j])
    b *= ALPHA
    return b


SQUARE = (6, 6)
KERNELS: list[Kernel] = [
    of_shapes(gemm, (4, 5), (4, 6), (6, 5)),
    of_shapes(k2mm, (4, 5), (5, 6), (6, 3), (4, 3)),
    of_shapes(k3mm, (4, 5), (5, 6), (6, 3), (3, 7)),
    of_shapes(atax, (7, 5), (5,)),
    of_shapes(bicg, (7, 5), (5,), (7,)),
    of_shapes(mvt, (6,), (6,), (6,), (6,), SQUARE),
    of_shapes(gemver, SQUARE, *[(6,)] * 8),
    of_shapes(gesummv, SQUARE, SQUARE, (6,)),
    of_shapes(doitgen, (3, 4, 5), (5, 5)),
    of_shapes(symm, (5, 4), (5, 5), (5, 4)),
    of_shapes(syrk, SQUARE, (6, 4)),
    of_shapes(syr2k, SQUARE, (6, 4), (6, 4)),
    of_shapes(trmm, (5, 5), (5, 4)),
]
