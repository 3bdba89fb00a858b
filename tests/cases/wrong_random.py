"""Invalid calls of the random ops."""

# The lambdas are called with arrays of the types beside them, and wrongly on purpose.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import math

from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ptir import ops as ptir
from tests.cases.wrong import wrong

RANDOM = (
    wrong(
        lambda s: ptir.rng_uniform(s, shape=(3,)),
        "f32[]",
        error=DTypeError,
        words="found dtype f32, expected a int or uint dtype | in rng_uniform(seed: f32[]",
    ),
    wrong(
        lambda s: ptir.random_bits(s, shape=(3,), dtype="si32"),
        "si64[]",
        error=DTypeError,
        words="dtype is si32, expected an unsigned integer | in random_bits( | fix: dtype='ui32'",
    ),
    wrong(
        lambda s: ptir.random_bits(s, s[0], shape=(3,)),
        "ui64[2]",
        error=ShapeError,
        words="start has type ui64[], expected ui64[2], one for each seed | in random_bits(",
    ),
    wrong(
        lambda s: ptir.random_bits(s, shape=(3,), stream=2**32),
        "ui64[]",
        error=ArgumentError,
        words="stream is 4294967296, expected a number from 0 to 2**32 - 1 | in random_bits(",
    ),
    wrong(
        lambda s: ptir.rng_uniform(7, shape=(3,)) + s,
        "f32[]",
        error=ArgumentError,
        words="seed is 7, expected a Tensor | in rng_uniform(seed: 7 | fix: ptir.tensor(x)",
    ),
    wrong(
        lambda s: ptir.rng_normal(s, shape=(3,), dtype="si32"),
        "si64[]",
        error=DTypeError,
        words="dtype is si32, expected a float | in rng_normal( | fix: dtype='f32'",
    ),
    wrong(
        lambda s: ptir.rng_uniform(s, shape=(-3,)),
        "si64[]",
        error=ShapeError,
        words="shape [-3] has a negative extent | in rng_uniform(",
    ),
    wrong(
        lambda s: ptir.rng_uniform(s, shape=(3,), low=1.0),
        "si64[]",
        error=ArgumentError,
        words="low is 1.0 and high 1.0, expected low < high | in rng_uniform(",
    ),
    wrong(
        lambda s: ptir.rng_uniform(s, shape=(3,), high=math.nan),
        "si64[]",
        error=ArgumentError,
        words="high nan, expected low < high | in rng_uniform(",
    ),
    wrong(
        lambda s: ptir.rng_uniform(s, shape=(3,), low=-3e38, high=3e38),
        "si64[]",
        error=ArgumentError,
        words="[-3e+38, 3e+38) is wider than f32 can hold | in rng_uniform(",
    ),
    wrong(
        lambda s: ptir.rng_uniform(s, shape=(3,), high=1e5, dtype="f16"),
        "si64[]",
        error=ArgumentError,
        words="[0.0, 100000.0) is wider than f16 can hold | in rng_uniform(",
    ),
    wrong(
        lambda s: ptir.rng_uniform(s, shape=(3,), low=1.1, high=1.11, dtype="fp8_e4m3"),
        "si64[]",
        error=ArgumentError,
        words="no fp8_e4m3 lies in [1.1, 1.11) | in rng_uniform(",
    ),
    *(
        wrong(call, "si64[]", error=ArgumentError, words=f"{found}, expected finite numbers of f32")
        for call, found in (
            (lambda s: ptir.rng_normal(s, shape=(3,), std=-1.0), "mean is 0.0 and std -1.0"),
            (lambda s: ptir.rng_normal(s, shape=(3,), mean=math.inf), "mean is inf and std 1.0"),
            (lambda s: ptir.rng_normal(s, shape=(3,), mean=1e39), "mean is 1e+39 and std 1.0"),
        )
    ),
)
