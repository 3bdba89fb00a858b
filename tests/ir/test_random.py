"""Random ops: Philox's published vectors, the distributions, and independence of the schedule."""

# The parameters of a lambda have no types, and dtypes are given by name.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.ops.random import philox
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from tests.cases.random import philox_words

COUNT = 200_000
FLOATS = ("f32", "f64", "f16", "bf16", "fp8_e4m3", "fp8_e5m2")


def seed(value: int) -> Tensor:
    return ptir.tensor(np.array(value))


def uniform(value: int, shape: tuple[int, ...] = (COUNT,), **attrs: Any) -> Array:
    return ptir.rng_uniform(seed(value), shape=shape, **attrs).numpy()


def normal(value: int, shape: tuple[int, ...] = (COUNT,), **attrs: Any) -> Array:
    return ptir.rng_normal(seed(value), shape=shape, **attrs).numpy()


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        (
            (0, 0, 0, 0),
            (0, 0),
            (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
        ),
        (
            (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
            (0xFFFFFFFF, 0xFFFFFFFF),
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_known_answers(
    counter: tuple[int, ...], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    """Source: kat_vectors of the Random123 library, philox4x32 with 10 rounds."""
    (words,) = philox(np.array([counter], np.uint32), key)
    assert tuple(words.tolist()) == expected
    assert tuple(philox_words(list(counter), list(key))) == expected


def test_a_block_far_away_has_a_counter_of_two_words() -> None:
    """No result is so long here: the words of block 2³² + 5 come from the counter alone."""
    (near, far) = philox(np.array([[5, 0, 0, 0], [5, 1, 0, 0]], np.uint32), (7, 0))
    assert not np.intersect1d(near, far).size


def deviation(sample: Array, distribution: Any) -> float:
    """The greatest distance between the empirical and the true distribution function, times √n."""
    ordered = np.sort(sample.ravel().astype(np.float64))
    expected = np.array([distribution(value) for value in ordered])
    steps = np.arange(ordered.size + 1) / ordered.size
    return max(np.abs(expected - s).max() for s in (steps[1:], steps[:-1])) * ordered.size**0.5


def phi(value: float) -> float:
    return (1 + math.erf(value / math.sqrt(2))) / 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, -1, 2**63 - 1])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_distributions(number: int, dtype: str) -> None:
    """Bounds that a right sample exceeds with a probability below 1 in 10⁵.

    Means and variances: 4.5 standard errors. Kolmogorov: P(√n·D > 2.5) < 8·10⁻⁶.
    """
    u = uniform(number, dtype=dtype).astype(np.float64)
    assert abs(u.mean() - 1 / 2) < 4.5 * math.sqrt(1 / 12 / COUNT)
    assert abs(u.var() - 1 / 12) < 4.5 * math.sqrt((1 / 80 - 1 / 144) / COUNT)
    assert deviation(u, lambda value: value) < 2.5
    z = normal(number, dtype=dtype).astype(np.float64)
    assert abs(z.mean()) < 4.5 / math.sqrt(COUNT)
    assert abs(z.var() - 1) < 4.5 * math.sqrt(2 / COUNT)
    assert abs((z**3).mean()) < 4.5 * math.sqrt(15 / COUNT)
    assert abs((z**4).mean() - 3) < 4.5 * math.sqrt(96 / COUNT)
    assert deviation(z, phi) < 2.5
    # Neighbours, the two numbers of a pair, and the two streams of a seed are not related.
    for a, b in (
        (u[:-1], u[1:]),
        (z[:-1], z[1:]),
        (z[::2], z[1::2]),
        (u, z),
        (z[::2] ** 2, z[1::2]),
    ):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / math.sqrt(len(a))


@pytest.mark.parametrize("make", [uniform, normal])
def test_seeds_differ(make: Any) -> None:
    drawn = np.stack([make(n, (1000,)) for n in (0, 1, 2, 3, -1, 2**32, 2**33, 5 * 2**32)])
    related = np.corrcoef(drawn) - np.eye(len(drawn))
    assert np.abs(related).max() < 4.5 / math.sqrt(1000)


@pytest.mark.parametrize("make", [uniform, normal])
@pytest.mark.parametrize("dtype", FLOATS)
def test_elements_depend_on_their_position_alone(make: Any, dtype: str) -> None:
    whole = make(5, (1001,), dtype=dtype)
    for count in (0, 1, 2, 3, 4, 5, 6, 7, 100, 1000):
        np.testing.assert_array_equal(make(5, (count,), dtype=dtype), whole[:count])
    np.testing.assert_array_equal(make(5, (7, 11, 13), dtype=dtype).ravel(), whole)
    assert make(5, (), dtype=dtype) == whole[0]


@pytest.mark.parametrize("make", [uniform, normal])
def test_narrow_dtypes_are_f32_rounded(make: Any) -> None:
    """For the interval from 0 to 1 but for what would round to 1."""
    exact = make(3, (1000,))
    for dtype in ("f16", "bf16", "fp8_e4m3", "fp8_e5m2"):
        found = make(3, (1000,), dtype=dtype)
        rounded = exact.astype(found.dtype)
        if make is uniform:
            rounded = np.where(rounded == 1, np.nextafter(rounded, rounded.dtype.type(0)), rounded)
        np.testing.assert_array_equal(found.astype(np.float64), rounded.astype(np.float64))


def test_the_dtype_of_the_seed_does_not_matter() -> None:
    for value, dtypes in (
        (7, ("si4", "ui4", "si8", "ui16", "ui32", "si64", "ui64")),
        (-1, ("si4", "si8", "si16", "si32", "si64")),
    ):
        for op in (ptir.rng_uniform, ptir.rng_normal):
            drawn = [op(ptir.cast(seed(value), dtype=d), shape=(9,)).tolist() for d in dtypes]
            assert all(each == drawn[0] for each in drawn)
    largest = ptir.tensor(np.array(2**64 - 1, np.uint64))
    assert ptir.rng_uniform(largest, shape=(9,)).tolist() == uniform(-1, (9,)).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (1.0, 2.0), (-1.0, 0.0), (0.1, 0.3), (-0.3, -0.1), (255.5, 320)]
)
def test_the_interval_is_half_open(dtype: str, low: float, high: float) -> None:
    drawn = uniform(11, dtype=dtype, low=low, high=high).astype(np.float64)
    assert low <= drawn.min()
    assert drawn.max() < high
    spacing = float(np.spacing(ptir.tensor(max(-low, high), dtype=dtype).numpy()))
    assert abs(drawn.mean() - (low + high) / 2) < (high - low) / 100 + spacing


@pytest.mark.parametrize("kind", ["faer", "reference"])
def test_symbolic_shapes(kind: str) -> None:
    def draw(x: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        shape = (x.shape[0], 3)
        return (
            ptir.rng_uniform(number, shape=shape) + x,
            ptir.rng_normal(number, shape=shape, dtype="f64"),
        )

    function: Any = ptir.jit(dynamic={"x": {0: "S"}})(draw)
    with ptir.backend(kind):
        for size in (1, 4, 50):
            x = np.ones((size, 1), np.float32)
            for number in (0, 9):
                u, z = function(x, np.array(number))
                np.testing.assert_array_equal(u.numpy(), uniform(number, (size, 3)) + 1)
                expected = normal(number, (size, 3), dtype="f64")
                last_places = 4 * np.finfo(np.float64).eps if kind == "faer" else 0
                np.testing.assert_allclose(z.numpy(), expected, rtol=last_places, atol=last_places)


@pytest.mark.parametrize("kind", ["faer", "reference"])
def test_each_of_many_seeds_draws_its_own(kind: str) -> None:
    """Also over several groups of blocks of a seed, and from a block of its own."""
    seeds = np.array([[3, -1, 2**40], [0, 3, 5]])
    starts = np.array([[0, 1, 2**33], [2**64 - 1, 5, 0]], np.uint64)
    function: Any = ptir.jit(
        lambda s, b: (
            ptir.rng_uniform(s, shape=(9, 100)),
            ptir.rng_normal(s, shape=(700,)),
            ptir.random_bits(s, b, shape=(700,)),
        )
    )
    with ptir.backend(kind):
        u, z, bits = function(seeds, starts)
    for at in np.ndindex(2, 3):
        np.testing.assert_array_equal(u.numpy()[at], uniform(int(seeds[at]), (9, 100)))
        np.testing.assert_array_equal(z.numpy()[at], normal(int(seeds[at]), (700,)))
        one = ptir.random_bits(seed(seeds[at]), ptir.tensor(starts[at]), shape=(700,))
        np.testing.assert_array_equal(bits.numpy()[at], one.numpy())
    whole = ptir.random_bits(seed(3), shape=(700,)).numpy()
    np.testing.assert_array_equal(bits.numpy()[1, 1], np.r_[whole[20:], bits.numpy()[1, 1, -20:]])


def test_another_seed_needs_no_new_program() -> None:
    function: Any = ptir.jit(lambda number: ptir.rng_uniform(number, shape=(4,)))
    results = [function(np.array(n)).tolist() for n in range(3)]
    assert results == [uniform(n, (4,)).tolist() for n in range(3)]
    assert len(function.retraces()) == 1
