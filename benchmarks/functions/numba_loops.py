"""The loops that Numba compiles, with ``parallel`` and ``fastmath``. Plain functions until then."""

# Numba knows what it takes and returns, a type checker does not.
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

import math

import numpy as np
from numba import prange


def distances(x, y):
    """[N, M] sums of squared differences of rows."""
    found = np.empty((x.shape[0], y.shape[0]), x.dtype)
    for i in prange(x.shape[0]):
        for j in range(y.shape[0]):
            total = x[i, 0] * 0
            for k in range(x.shape[1]):
                total += (x[i, k] - y[j, k]) ** 2
            found[i, j] = total
    return found


def jacobi_1d(x, steps):
    a, b = x.copy(), x.copy()
    for _ in range(steps):
        for i in prange(1, a.shape[0] - 1):
            b[i] = (a[i - 1] + a[i] + a[i + 1]) / 3
        a, b = b, a
    return a


def advection(x, steps):
    a, b = x.copy(), x.copy()
    for _ in range(steps):
        for i in prange(1, a.shape[0] - 1):
            b[i] = a[i] - np.float32(0.3) * (a[i] - a[i - 1])
        a, b = b, a
    return a


def jacobi_2d(x, steps):
    a, b = x.copy(), x.copy()
    for _ in range(steps):
        for i in prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                around = a[i, j - 1] + a[i, j + 1] + a[i - 1, j] + a[i + 1, j]
                b[i, j] = np.float32(0.2) * (a[i, j] + around)
        a, b = b, a
    return a


def heat_3d(x, steps):
    a, b = x.copy(), x.copy()
    for _ in range(steps):
        for i in prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                for k in range(1, a.shape[2] - 1):
                    around = a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k]
                    around += a[i, j, k - 1] + a[i, j, k + 1]
                    b[i, j, k] = np.float32(0.25) * a[i, j, k] + np.float32(0.125) * around
        a, b = b, a
    return a


def recurrence(x):
    """y[i] = 0.9 y[i − 1] + x[i]."""
    found, state = np.empty_like(x), np.float32(0)
    for i in range(x.shape[0]):
        state = np.float32(0.9) * state + x[i]
        found[i] = state
    return found


def logistic(x, steps):
    state = x
    for _ in range(steps):
        state = np.float32(3.7) * state * (np.float32(1) - state)
    return state


def rnn(x, w, u, b):
    """x [T, N, D], w [D, H], u [H, H]."""
    state = np.zeros((x.shape[1], u.shape[0]), x.dtype)
    for t in range(x.shape[0]):
        state = np.tanh(x[t] @ w + state @ u + b)
    return state


def mandelbrot(cr, ci, limit):
    """How many steps each point takes to leave the circle."""
    found = np.zeros(cr.shape, np.int32)
    for i in prange(cr.shape[0]):
        for j in range(cr.shape[1]):
            x, y, count = cr[i, j] * 0, cr[i, j] * 0, 0
            while count < limit and x * x + y * y <= 4:
                x, y = x * x - y * y + cr[i, j], 2 * x * y + ci[i, j]
                count += 1
            found[i, j] = count
    return found


def newton(x):
    """Roots of y³ = x by Newton's method, all steps until none moves by more than 1e-6."""
    found = np.empty_like(x)
    for i in prange(x.shape[0]):
        y = x[i]
        for _ in range(40):
            y = y - (y * y * y - x[i]) / (3 * y * y)
        found[i] = y
    return found


def nbody(positions, masses):
    """Accelerations [N, 3], softened by 0.01."""
    found = np.empty_like(positions)
    for i in prange(positions.shape[0]):
        ax, ay, az = positions[i, 0] * 0, positions[i, 0] * 0, positions[i, 0] * 0
        for j in range(positions.shape[0]):
            dx = positions[j, 0] - positions[i, 0]
            dy = positions[j, 1] - positions[i, 1]
            dz = positions[j, 2] - positions[i, 2]
            squared = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            factor = masses[j] / (squared * math.sqrt(squared))
            ax += dx * factor
            ay += dy * factor
            az += dz * factor
        found[i, 0], found[i, 1], found[i, 2] = ax, ay, az
    return found


def kmeans(x, centres):
    """The means of the points that are nearest to each centre."""
    found = np.empty(x.shape[0], np.int64)
    for i in prange(x.shape[0]):
        best, at = np.float32(np.inf), 0
        for j in range(centres.shape[0]):
            total = x[i, 0] * 0
            for k in range(x.shape[1]):
                total += (x[i, k] - centres[j, k]) ** 2
            if total < best:
                best, at = total, j
        found[i] = at
    sums, counts = np.zeros_like(centres), np.zeros(centres.shape[0], x.dtype)
    for i in range(x.shape[0]):
        counts[found[i]] += 1
        for k in range(x.shape[1]):
            sums[found[i], k] += x[i, k]
    return sums / counts.reshape(-1, 1)


def black_scholes(s, k, t):
    """Prices of calls at a rate of 0.02 and a volatility of 0.3."""
    found = np.empty_like(s)
    for i in prange(s.shape[0]):
        root = np.float32(0.3) * math.sqrt(t[i])
        d1 = (math.log(s[i] / k[i]) + np.float32(0.065) * t[i]) / root
        d2 = d1 - root
        first = 1 + math.erf(d1 * np.float32(0.70710678))
        second = 1 + math.erf(d2 * np.float32(0.70710678))
        found[i] = 0.5 * (s[i] * first - k[i] * math.exp(np.float32(-0.02) * t[i]) * second)
    return found


def floyd_warshall(path):
    """Shortest paths [N, N]."""
    d = path.copy()
    for k in range(d.shape[0]):
        for i in prange(d.shape[0]):
            for j in range(d.shape[1]):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d
