"""dot_general with positional attributes, for one-line patterns of rules."""

from __future__ import annotations

from typing import Any

from gptrs.ir.ops.contract import dot_general


def dot(x: Any, y: Any, batch: Any, other: Any, left: Any, right: Any, wide: Any, out: Any) -> Any:
    """dot_general of x and y: batch axes, contracted axes of each, accum_dtype and out_dtype."""
    return dot_general(
        x,
        y,
        batch_lhs=batch,
        batch_rhs=other,
        contract_lhs=left,
        contract_rhs=right,
        accum_dtype=wide,
        out_dtype=out,
    )


NONE = {"wide": None, "out": None}
PLAIN = {"batch": (), "other": (), **NONE}
"""Attributes of samples: default dtypes, no batch axes."""
