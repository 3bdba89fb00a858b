"""Invalid calls of sort, top_k and segment reductions."""

# The lambdas are called with arrays of the types beside them, and wrongly on purpose.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from gptrs.errors import ArgumentError, DTypeError, ElementError, ShapeError
from gptrs.ptir import ops as ptir
from tests.cases.wrong import wrong

SORTED = (
    wrong(
        lambda x: ptir.sort(x),
        "cf32[3]",
        error=DTypeError,
        words="found dtype cf32 | in sort(x: cf32[3]",
    ),
    wrong(
        lambda x: ptir.sort(x), "f32[]", error=ShapeError, words="the operand has rank 0 | in sort("
    ),
    wrong(
        lambda x: ptir.top_k(x, k=4),
        "f32[2,3]",
        error=ShapeError,
        words="k is 4, but axis 1 has extent 3 | in top_k(x: f32[2,3] | fix: k=3 gives all",
    ),
    wrong(
        lambda x: ptir.top_k(x, k=-1),
        "f32[3]",
        error=ArgumentError,
        words="k is -1, expected an integer of at least 0 | in top_k(",
    ),
    wrong(
        lambda x: ptir.top_k(x, k=True),
        "f32[3]",
        error=ArgumentError,
        words="k is True, expected an integer | in top_k(",
    ),
    wrong(
        lambda x, i: ptir.segment_reduce(x, i, count=2, reduce="mean"),
        "si32[3]",
        "si64[3] 0..1",
        error=DTypeError,
        words="found dtype si32, expected a float or complex | in segment_reduce( | ptir.cast",
    ),
    wrong(
        lambda x, i: ptir.segment_reduce(x, i, count=2, reduce="max"),
        "i1[3]",
        "si64[3] 0..1",
        error=DTypeError,
        words="found dtype i1 | in segment_reduce(",
    ),
    wrong(
        lambda x, i: ptir.segment_reduce(x, i, count=2),
        "f32[3]",
        "f32[3]",
        error=DTypeError,
        words="found dtype f32, expected a int or uint dtype | in segment_reduce(",
    ),
    wrong(
        lambda x, i: ptir.segment_reduce(x, i, count=2, reduce="any"),
        "f32[3]",
        "si64[3] 0..1",
        error=ArgumentError,
        words="reduce is 'any', expected one of add, mul, max, min, mean | in segment_reduce(",
    ),
    wrong(
        lambda x, i: ptir.segment_reduce(x, i, count=2),
        "f32[3,2]",
        "si64[2] 0..1",
        error=ShapeError,
        words="segments has shape [2], expected [3]: one entry per row of x | in segment_reduce(",
    ),
    wrong(
        lambda x, i: ptir.segment_reduce(x, i, count=2),
        "f32[]",
        "si64[] 0..1",
        error=ShapeError,
        words="x has rank 0: there are no rows to combine | in segment_reduce(",
    ),
    wrong(
        lambda x, i: ptir.segment_reduce(x, i, count=-2),
        "f32[3]",
        "si64[3] 0..1",
        error=ShapeError,
        words="negative extent | in segment_reduce(",
    ),
    wrong(
        lambda x, i: ptir.segment_reduce(x, i, count=2),
        "f32[3]",
        "ui8[3] 2..2",
        error=ElementError,
        words="segment 2 is out of range for 2 segments | segment_reduce | fix: clamp the segments",
    ),
    wrong(
        lambda x, i: ptir.segment_reduce(x, i, count=4, reduce="min"),
        "f32[3]",
        "si4[3] -1..-1",
        error=ElementError,
        words="segment -1 is out of range for 4 segments | segment_reduce",
    ),
)
