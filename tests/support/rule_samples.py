"""Rules applied to programs, and whether what they make computes the same."""

from __future__ import annotations

import zlib

import numpy as np

from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.ir.program import Program, verify
from gptrs.ir.rewrite import Fuel, Rule, apply_rules
from gptrs.ir.sample_arrays import draw, same_bits
from gptrs.ir.types import Array, DType, Type
from gptrs.passes.base import Context
from gptrs.passes.dce import eliminate_dead_code


def apply(program: Program, *rules: Rule, fuel: Fuel | None = None) -> Program:
    """``program`` rewritten, without what became unused."""
    return eliminate_dead_code(apply_rules(program, rules, fuel), Context(ReferenceBackend()))


def assert_same_results(before: Program, after: Program) -> None:
    """Run both on the same arrays, all sorts of numbers among them."""
    verify(after)
    rng = np.random.default_rng(zlib.crc32(str(before).encode()))
    arrays = [draw(param.type, "any", rng) for param in before.params]
    for a, b in zip(
        ReferencePlan(before).run(arrays, {}), ReferencePlan(after).run(arrays, {}), strict=True
    ):
        assert same_bits(a, b)


def every_value(dtype: DType) -> Array:
    """All values of a dtype of up to 16 bits, many of the wider ones."""
    rng = np.random.default_rng(0)
    if dtype.bits == 4:
        return np.arange(dtype.limits[0], dtype.limits[1] + 1).astype(dtype.numpy)
    if dtype.bits <= 16:
        patterns = np.arange(2**dtype.bits, dtype=np.uint8 if dtype.bits == 8 else np.uint16)
        return patterns.view(dtype.numpy)
    return draw(Type((2000,), dtype), "any", rng)
