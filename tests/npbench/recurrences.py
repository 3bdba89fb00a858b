"""Dynamic programming, filters, transforms, fractals and particles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.npbench.kernel import Arguments, Kernel, of_shapes


def floyd_warshall(xp: Any, path: Any) -> Any:
    for k in range(path.shape[0]):
        path[:] = xp.minimum(path, path[:, k, None] + path[None, k, :])
    return path


def nussinov(xp: Any, sequence: Any) -> Any:
    n = sequence.shape[0]
    table = xp.zeros((n, n), dtype=xp.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            best = xp.maximum(table[i, j - 1], table[i + 1, j] if i + 1 < n else 0)
            if i + 1 < n:
                pair = xp.where(sequence[i] + sequence[j] == 3, 1, 0) if i < j - 1 else 0
                best = xp.maximum(best, table[i + 1, j - 1] + pair)
            for k in range(i + 1, j):
                best = xp.maximum(best, table[i, k] + table[k + 1, j])
            table[i, j] = best
    return table


def deriche(xp: Any, image: Any) -> Any:
    alpha = 0.25
    decay = math.exp(-alpha)
    scale = (1.0 - decay) ** 2 / (1.0 + 2.0 * alpha * decay - decay**2)
    a1 = a5 = scale
    a2 = a6 = scale * decay * (alpha - 1.0)
    a3 = a7 = scale * decay * (alpha + 1.0)
    a4 = a8 = -scale * decay**2
    b1, b2 = 2.0 ** (-alpha), -(decay**2)
    rows, columns = image.shape
    forward, backward = xp.empty_like(image), xp.empty_like(image)

    forward[:, 0] = a1 * image[:, 0]
    forward[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * forward[:, 0]
    for j in range(2, columns):
        forward[:, j] = (
            a1 * image[:, j]
            + a2 * image[:, j - 1]
            + b1 * forward[:, j - 1]
            + b2 * forward[:, j - 2]
        )
    backward[:, -1] = 0.0
    backward[:, -2] = a3 * image[:, -1]
    for j in range(columns - 3, -1, -1):
        backward[:, j] = (
            a3 * image[:, j + 1]
            + a4 * image[:, j + 2]
            + b1 * backward[:, j + 1]
            + b2 * backward[:, j + 2]
        )
    smooth = forward + backward

    forward[0, :] = a5 * smooth[0, :]
    forward[1, :] = a5 * smooth[1, :] + a6 * smooth[0, :] + b1 * forward[0, :]
    for i in range(2, rows):
        forward[i, :] = (
            a5 * smooth[i, :]
            + a6 * smooth[i - 1, :]
            + b1 * forward[i - 1, :]
            + b2 * forward[i - 2, :]
        )
    backward[-1, :] = 0.0
    backward[-2, :] = a7 * smooth[-1, :]
    for i in range(rows - 3, -1, -1):
        backward[i, :] = (
            a7 * smooth[i + 1, :]
            + a8 * smooth[i + 2, :]
            + b1 * backward[i + 1, :]
            + b2 * backward[i + 2, :]
        )
    return forward + backward


def mandelbrot1(xp: Any, xs: Any, ys: Any) -> Any:
    c = xs + ys[:, None] * 1j
    counts = xp.zeros(c.shape, dtype=xp.int64)
    z = xp.zeros(c.shape, dtype=xp.complex128)
    for n in range(8):
        inside = xp.less(abs(z), 2.0)
        counts[inside] = n
        z = xp.where(inside, z**2 + c, z)
    counts[counts == 7] = 0
    return z, counts


def mandelbrot2(xp: Any, xs: Any, ys: Any) -> Any:
    """The same with what has escaped left as it was."""
    c = xs + ys[:, None] * 1j
    z, counts = xp.zeros_like(c), xp.zeros(c.shape, dtype=xp.int64)
    for n in range(8):
        z = xp.where(xp.abs(z) > 2.0, z, xp.multiply(z, z) + c)
        counts = xp.where((xp.abs(z) > 2.0) & (counts == 0), n + 1, counts)
    return xp.transpose(counts)


def _pulled(xp: Any, position: Any, mass: Any) -> Any:
    """The acceleration of each body by all others, softened."""
    x, y, z = position[:, 0:1], position[:, 1:2], position[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    squared = dx**2 + dy**2 + dz**2 + 0.1**2
    inverse = squared ** (-1.5)
    ax, ay, az = (dx * inverse) @ mass, (dy * inverse) @ mass, (dz * inverse) @ mass
    return xp.hstack((ax, ay, az))


def _energy(xp: Any, position: Any, velocity: Any, mass: Any) -> Any:
    kinetic = 0.5 * xp.sum(xp.sum(mass * velocity**2))
    x, y, z = position[:, 0:1], position[:, 1:2], position[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inverse = xp.sqrt(dx**2 + dy**2 + dz**2)
    inverse = xp.where(inverse > 0, 1.0 / xp.where(inverse > 0, inverse, 1.0), inverse)
    return kinetic, xp.sum(xp.triu(-(mass * mass.T) * inverse, 1))


def nbody(xp: Any, mass: Any, position: Any, velocity: Any) -> Any:
    steps, dt = 3, 0.01
    kinetic, potential = xp.empty(steps + 1), xp.empty(steps + 1)
    velocity -= xp.mean(mass * velocity, axis=0) / xp.mean(mass)
    acceleration = _pulled(xp, position, mass)
    kinetic[0], potential[0] = 0.0, 0.0
    energies = [_energy(xp, position, velocity, mass)]
    for _ in range(steps):
        velocity += acceleration * dt / 2.0
        position += velocity * dt
        acceleration = _pulled(xp, position, mass)
        velocity += acceleration * dt / 2.0
        energies.append(_energy(xp, position, velocity, mass))
    return position, velocity, *(xp.stack(part) for part in zip(*energies, strict=True))


def scattering_self_energies(
    xp: Any, neighbours: Any, derivative: Any, green: Any, phonon: Any
) -> Any:
    sigma = xp.zeros(green.shape, dtype=green.dtype)
    momenta, energies, sites, orbitals = green.shape[:4]
    for k in range(momenta):
        for energy in range(energies):
            for q in range(phonon.shape[0]):
                for w in range(phonon.shape[1]):
                    if energy - w < 0:
                        continue
                    for site in range(sites):
                        for pair in range(neighbours.shape[1]):
                            left = green[k, energy - w, neighbours[site, pair]]
                            right = derivative[site, pair] * phonon[q, w, site, pair]
                            sigma[k, energy, site] += left @ derivative[site, pair] @ right
    return sigma.reshape(momenta, energies, sites, orbitals * orbitals)


RADIX, STAGES = 2, 3


def stockham_fft(xp: Any, x: Any) -> Any:
    n = RADIX**STAGES
    places = xp.arange(RADIX, dtype=xp.float64)
    small = xp.exp(-2.0j * xp.pi * xp.outer(places, places) / RADIX)
    y = x.copy()
    for stage in range(STAGES):
        blocks, spread = RADIX**stage, RADIX ** (STAGES - stage - 1)
        grid = xp.reshape(y, (RADIX, blocks, spread))
        turned = xp.exp(
            -2.0j * xp.pi * xp.outer(places, xp.arange(blocks, dtype=xp.float64)) / (RADIX * blocks)
        )
        twisted = grid * turned[:, :, None]
        y = xp.reshape(
            xp.transpose(
                xp.reshape(small @ xp.reshape(twisted, (RADIX, -1)), grid.shape), (0, 1, 2)
            ),
            (RADIX, blocks, spread),
        )
        y = xp.reshape(xp.reshape(y, (RADIX * blocks, spread)), (n,))
        if stage < STAGES - 1:
            split = xp.reshape(y, (RADIX * blocks, RADIX, spread // RADIX))
            y = xp.reshape(xp.transpose(split, (1, 0, 2)), (n,))
    return y


def _paths(rng: np.random.Generator) -> Arguments:
    return (rng.integers(1, 1000, (6, 6)),)


def _sequence(rng: np.random.Generator) -> Arguments:
    return (rng.integers(0, 4, 7).astype(np.int32),)


def _plane(_rng: np.random.Generator) -> Arguments:
    return np.linspace(-2.25, 0.75, 6), np.linspace(-1.25, 1.25, 5)


def _bodies(rng: np.random.Generator) -> Arguments:
    return 20.0 * np.ones((5, 1)) / 5, rng.standard_normal((5, 3)), rng.standard_normal((5, 3))


def _lattice(rng: np.random.Generator) -> Arguments:
    def drawn(*shape: int) -> Any:
        return rng.random(shape) + 1j * rng.random(shape)

    neighbours = rng.integers(0, 3, (3, 2))
    return neighbours, drawn(3, 2, 2, 2), drawn(2, 2, 3, 2, 2), drawn(2, 2, 3, 2, 2, 2)


def _signal(rng: np.random.Generator) -> Arguments:
    return (rng.random(RADIX**STAGES) + 1j * rng.random(RADIX**STAGES),)


KERNELS: list[Kernel] = [
    Kernel(floyd_warshall, _paths),
    Kernel(nussinov, _sequence),
    of_shapes(deriche, (6, 7)),
    Kernel(mandelbrot1, _plane),
    Kernel(mandelbrot2, _plane),
    Kernel(nbody, _bodies),
    Kernel(scattering_self_energies, _lattice),
    Kernel(stockham_fft, _signal),
]
