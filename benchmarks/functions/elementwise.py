"""Chains of elementwise operations: arithmetic in six dtypes, transcendental functions, calls whose
work is next to nothing."""

from __future__ import annotations

from dataclasses import make_dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.functions.case import Arguments, Case, draw, sized
from gptrs import ptir
from gptrs.ir.parameter import Parameter

LENGTHS = [(1_000,), (100_000,), (4_000_000,)]
NARROW = [(1_000,), (1_000_000,)]


def cases() -> list[Case]:
    """Arithmetic, integers, transcendental functions, calls."""
    return [*_arithmetic(), *_integers(), *_transcendental(), *_calls()]


def _arithmetic() -> list[Case]:
    found: list[Case] = []
    for dtype, lengths in {"f32": LENGTHS, "f64": LENGTHS, "f16": NARROW, "bf16": NARROW}.items():
        found += sized(
            "elementwise",
            f"polynomial {dtype}",
            [(length, length) for length in lengths],
            lambda x, y: (x * 0.5 + y) * (x - y * 1.5) + 0.25,
            lambda xp, x, y: (x * 0.5 + y) * (x - y * 1.5) + 0.25,
            dtype=dtype,
        )
    found += sized(
        "elementwise",
        "clip and where f32",
        [(length, length) for length in LENGTHS],
        lambda x, y: ptir.select(x > 0, ptir.minimum(x, y), ptir.maximum(x * 0.1, y - 1)),
        lambda xp, x, y: xp.where(x > 0, xp.minimum(x, y), xp.maximum(x * 0.1, y - 1)),
    )
    found += sized(
        "elementwise",
        "outer sum and scale f32",
        [((32, 1), (1, 32)), ((300, 1), (1, 300)), ((2000, 1), (1, 2000))],
        lambda x, y: ptir.abs(x - y) * 0.5 + x * y,
        lambda xp, x, y: xp.abs(x - y) * 0.5 + x * y,
    )
    return found


def _integers() -> list[Case]:
    found: list[Case] = []
    for dtype in ("si8", "si32"):
        found += sized(
            "elementwise",
            f"arithmetic {dtype}",
            [(length, length) for length in LENGTHS],
            lambda x, y: ptir.maximum(x * 3 + y, x - y) & 63,
            lambda xp, x, y: xp.maximum(x * 3 + y, x - y) & 63,
            dtype=dtype,
        )
    found += sized(
        "elementwise",
        "hash si32",
        LENGTHS,
        lambda x: (x ^ (x << 7)) * 31 + (x >> 3),
        lambda xp, x: (x ^ (x << 7)) * 31 + (x >> 3),
        dtype="si32",
    )
    return found


def _transcendental() -> list[Case]:
    found: list[Case] = []
    for dtype, lengths in {"f32": LENGTHS, "f64": LENGTHS}.items():
        found += sized(
            "transcendental",
            f"exp of sine and cosine {dtype}",
            lengths,
            lambda x: ptir.exp(-x * x) * ptir.sin(x) + ptir.cos(x),
            lambda xp, x: xp.exp(-x * x) * xp.sin(x) + xp.cos(x),
            dtype=dtype,
        )
        found += sized(
            "transcendental",
            f"power {dtype}",
            [(length, length) for length in lengths[:2]],
            lambda x, y: (ptir.abs(x) + 0.1) ** y,
            lambda xp, x, y: (xp.abs(x) + 0.1) ** y,
            dtype=dtype,
        )
    found += sized(
        "transcendental",
        "log, sqrt and tanh f32",
        LENGTHS,
        lambda x: ptir.tanh(ptir.log(ptir.abs(x) + 1) * ptir.sqrt(ptir.abs(x))),
        lambda xp, x: xp.tanh(xp.log(xp.abs(x) + 1) * xp.sqrt(xp.abs(x))),
    )
    found += sized(
        "transcendental",
        "gelu (tanh) f32",
        LENGTHS,
        ptir.gelu_tanh,
        lambda xp, x: 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x))),
        torch=lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
    )
    found += sized(
        "transcendental",
        "sigmoid gate f32",
        [(length, length) for length in LENGTHS],
        lambda x, y: ptir.sigmoid(x) * ptir.tanh(y),
        lambda xp, x, y: xp.tanh(y) / (1 + xp.exp(-x)),
        torch=lambda torch, x, y: torch.sigmoid(x) * torch.tanh(y),
    )
    return found


def _calls() -> list[Case]:
    """Ten elements: what a call costs."""
    short = (10,)
    return [
        *sized("call", "one array", [short], lambda x: x * 2 + 1, lambda xp, x: x * 2 + 1),
        *sized(
            "call",
            "five arrays",
            [(short,) * 5],
            lambda a, b, c, d, e: a + b * c - d * e,
            lambda xp, a, b, c, d, e: a + b * c - d * e,
        ),
        *sized(
            "call",
            "twenty arrays",
            [(short,) * 20],
            lambda *xs: xs[0] + xs[7] * xs[19],
            lambda xp, *xs: xs[0] + xs[7] * xs[19],
        ),
        *sized(
            "call",
            "dict of twenty",
            [20],
            lambda tree: tree["a0"]["w"] + tree["a5"]["b"],
            lambda xp, tree: tree["a0"]["w"] + tree["a5"]["b"],
            make=_tree,
        ),
        *sized(
            "call",
            "dict of",
            [50],
            lambda tree: tree["a0"] + tree["a9"],
            lambda xp, tree: tree["a0"] + tree["a9"],
            make=lambda rng, count: ({f"a{i}": draw(rng, short) for i in range(count)},),
        ),
        *sized(
            "call",
            "dataclass of",
            [50],
            lambda tree: tree.a0 + tree.a9,
            lambda xp, tree: tree.a0 + tree.a9,
            make=_record,
            jax=None,  # takes dataclasses that are registered alone
        ),
        *sized(
            "call",
            "fifty captured parameters",
            [short],
            _add_weights,
            lambda xp, x: sum(WEIGHTS, x),
            torch=lambda torch, x: sum(_torch_weights(), x),
        ),
    ]


WEIGHTS = [np.full(10, i, np.float32) for i in range(50)]
PARAMETERS = [Parameter(weight, f"weight {i}") for i, weight in enumerate(WEIGHTS)]


def _record(rng: np.random.Generator, count: int) -> Arguments:
    kind: Any = make_dataclass("Fields", [f"a{i}" for i in range(count)])
    return (kind(*(draw(rng, (10,)) for _ in range(count))),)


def _add_weights(x: Any) -> Any:
    for parameter in PARAMETERS:
        x = x + parameter
    return x


@cache
def _torch_weights() -> list[Any]:
    import torch

    return [torch.from_numpy(weight) for weight in WEIGHTS]


def _tree(rng: np.random.Generator, leaves: int) -> Arguments:
    pairs = range(leaves // 2)
    return ({f"a{i}": {"w": draw(rng, (10,)), "b": draw(rng, (10,))} for i in pairs},)
