"""Statistics, histograms, and element-wise kernels of several fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.npbench.kernel import Arguments, Kernel, of_shapes


def correlation(xp: Any, data: Any) -> Any:
    deviation = xp.std(data, axis=0)
    deviation[deviation <= 0.1] = 1.0
    data -= xp.mean(data, axis=0)
    data /= xp.sqrt(float(data.shape[0])) * deviation
    result = xp.eye(data.shape[1], dtype=data.dtype)
    for i in range(data.shape[1] - 1):
        result[i + 1 :, i] = result[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return result


def covariance(xp: Any, data: Any) -> Any:
    data -= xp.mean(data, axis=0)
    result = xp.zeros((data.shape[1], data.shape[1]), dtype=data.dtype)
    for i in range(data.shape[1]):
        result[i:, i] = result[i, i:] = data[:, i] @ data[:, i:] / (data.shape[0] - 1.0)
    return result


def covariance2(xp: Any, data: Any) -> Any:
    return xp.cov(xp.transpose(data))


BINS = 5


def azimint_naive(xp: Any, data: Any, radius: Any) -> Any:
    furthest = radius.max()
    result = xp.zeros(BINS, dtype=data.dtype)
    for i in range(BINS):
        inner, outer = furthest * (i / BINS), furthest * ((i + 1) / BINS)
        inside = xp.logical_and(inner <= radius, radius < outer)
        result[i] = xp.mean(data, where=inside)
    return result


def azimint_hist(xp: Any, data: Any, radius: Any) -> Any:
    counts = xp.histogram(radius, BINS)[0]
    return xp.histogram(radius, BINS, weights=data)[0] / counts


def go_fast(xp: Any, a: Any) -> Any:
    trace = 0.0
    for i in range(a.shape[0]):
        trace += xp.tanh(a[i, i])
    return a + trace


def compute(xp: Any, x: Any, y: Any) -> Any:
    return xp.clip(x, 2, 10) * 4 + y * 3 + 9


def arc_distance(xp: Any, theta1: Any, phi1: Any, theta2: Any, phi2: Any) -> Any:
    chord = (
        xp.sin((theta2 - theta1) / 2) ** 2
        + xp.cos(theta1) * xp.cos(theta2) * xp.sin((phi2 - phi1) / 2) ** 2
    )
    return 2 * xp.arctan2(xp.sqrt(chord), xp.sqrt(1 - chord))


def contour_integral(xp: Any, hamiltonian: Any, points: Any, start: Any) -> Any:
    moment0 = xp.zeros(start.shape, dtype=xp.complex128)
    moment1 = xp.zeros(start.shape, dtype=xp.complex128)
    for k in range(points.shape[0]):
        z = points[k]
        terms = xp.zeros(hamiltonian.shape[1:], dtype=xp.complex128)
        for n in range(hamiltonian.shape[0]):
            terms += xp.power(z, hamiltonian.shape[0] // 2 - n) * hamiltonian[n]
        x = xp.linalg.solve(terms, start)
        x = xp.where(xp.absolute(z) < 1.0, -x, x)
        moment0 += x
        moment1 += z * x
    return moment0, moment1


def spmv(xp: Any, pointers: Any, columns: Any, values: Any, x: Any) -> Any:
    """Rows of a sparse matrix by a vector: differences of the running sum of all products."""
    products = xp.concatenate((xp.zeros(1, values.dtype), xp.cumsum(values * x[columns])))
    return products[pointers[1:]] - products[pointers[:-1]]


POLYNOMIAL = 0x8408


def crc16(xp: Any, data: Any) -> Any:
    crc = xp.full((), 0xFFFF, dtype=xp.int32)
    for i in range(data.shape[0]):
        byte = data[i].astype(xp.int32)
        for _ in range(8):
            flips = ((crc & 1) ^ (byte & 1)) != 0
            crc = xp.where(flips, (crc >> 1) ^ POLYNOMIAL, crc >> 1)
            byte = byte >> 1
    crc = ~crc & 0xFFFF
    return ((crc << 8) | ((crc >> 8) & 0xFF)) & 0xFFFF


def _sparse(rng: np.random.Generator) -> Arguments:
    pointers = np.array([0, 2, 2, 5, 6])
    return pointers, rng.integers(0, 7, 6), rng.random(6), rng.random(7)


def _contour(rng: np.random.Generator) -> Arguments:
    hamiltonian = rng.random((3, 4, 4)) + 1j * rng.random((3, 4, 4)) + 4 * np.eye(4)
    points = np.exp(1j * np.arange(3)) * np.array([0.5, 1.5, 0.8])
    return hamiltonian, points, rng.random((4, 2)) + 0j


def _bytes(rng: np.random.Generator) -> Arguments:
    return (rng.integers(0, 256, 4).astype(np.uint8),)


def _integers(rng: np.random.Generator) -> Arguments:
    return rng.integers(0, 1000, (5, 6)), rng.integers(0, 1000, (5, 6))


KERNELS: list[Kernel] = [
    of_shapes(correlation, (9, 5)),
    of_shapes(covariance, (9, 5)),
    of_shapes(covariance2, (9, 5)),
    of_shapes(azimint_naive, (60,), (60,)),
    of_shapes(azimint_hist, (60,), (60,)),
    of_shapes(go_fast, (6, 6)),
    Kernel(compute, _integers),
    of_shapes(arc_distance, (7,), (7,), (7,), (7,)),
    Kernel(contour_integral, _contour),
    Kernel(spmv, _sparse),
    Kernel(crc16, _bytes),
]
