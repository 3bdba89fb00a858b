"""Invalid calls of quantize, dequantize and requantize."""

# The lambdas are called with arrays of the types beside them, and wrongly on purpose.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ptir import ops as ptir
from tests.cases.wrong import wrong

QUANTIZED = (
    wrong(
        lambda x, s: ptir.quantize(x, s, dtype="si8"),
        "si32[3]",
        "f32[]",
        error=DTypeError,
        words="found dtype si32, expected a float dtype | in quantize(x: si32[3]",
    ),
    wrong(
        lambda x, s: ptir.quantize(x, s, dtype="si8"),
        "f32[3]",
        "si32[]",
        error=DTypeError,
        words="found dtype si32, expected a float dtype | in quantize(x: f32[3] | scale: si32[]",
    ),
    wrong(
        lambda x, s: ptir.quantize(x, s, dtype="si64"),
        "f32[3]",
        "f32[]",
        error=DTypeError,
        words="found dtype si64 for quantized numbers, expected fp8 or an integer of at most 32 | "
        "in quantize( | fix: dtype='si8'",
    ),
    wrong(
        lambda q, s: ptir.dequantize(q, s),
        "f16[3]",
        "f32[]",
        error=DTypeError,
        words="found dtype f16 for quantized numbers | in dequantize(q: f16[3]",
    ),
    wrong(
        lambda q, s: ptir.dequantize(q, s, dtype="si32"),
        "si8[3]",
        "f32[]",
        error=DTypeError,
        words="dtype is si32, expected a float | in dequantize( | fix: dtype='f32'",
    ),
    wrong(
        lambda x, s, z: ptir.quantize(x, s, z, dtype="ui8"),
        "f32[3]",
        "f32[]",
        "si32[] 1..1",
        error=DTypeError,
        words="zero_point has dtype si32, expected ui8 | in quantize( | "
        "fix: ptir.cast(zero_point, dtype='ui8')",
    ),
    wrong(
        lambda q, s, z: ptir.requantize(q, s, s, None, z, dtype="fp8_e5m2"),
        "si8[3]",
        "f32[]",
        "fp8_e5m2[]",
        error=DTypeError,
        words="zero_point is given, but fp8_e5m2 has none | in requantize( | fix: zero_point=None",
    ),
    wrong(
        lambda x, s: ptir.quantize(x, s, dtype="si8"),
        "f32[2,3]",
        "f32[3]",
        error=ShapeError,
        words="scale has shape [3], expected [] | in quantize( | fix: axis= names the axis",
    ),
    wrong(
        lambda x, s: ptir.quantize(x, s, dtype="si8", axis=0),
        "f32[2,3]",
        "f32[3]",
        error=ShapeError,
        words="scale has shape [3], expected [2] | in quantize(",
    ),
    wrong(
        lambda q, s, z: ptir.dequantize(q, s, z, axis=1),
        "si8[2,3]",
        "f32[3]",
        "si8[]",
        error=ShapeError,
        words="zero_point has shape [], expected [3] | in dequantize(",
    ),
    wrong(
        lambda q, s, t: ptir.requantize(q, s, t, dtype="si8"),
        "si8[2,3]",
        "f32[]",
        "f32[3]",
        error=ShapeError,
        words="new_scale has shape [3], expected [] | in requantize(",
    ),
    wrong(
        lambda x, s: ptir.quantize(x, s, dtype="si8", axis=1, group_size=4),
        "f32[2,6]",
        "f32[2,2]",
        error=ShapeError,
        words="axis 1 has extent 6: groups of 4 do not divide it | in quantize(",
    ),
    wrong(
        lambda x, s: ptir.quantize(x, s, dtype="si8", axis=1, group_size=2),
        "f32[2,6]",
        "f32[3]",
        error=ShapeError,
        words="scale has shape [3], expected [2,3] | in quantize(",
    ),
    wrong(
        lambda x, s: ptir.quantize(x, s, dtype="si8", group_size=2),
        "f32[2,6]",
        "f32[2,3]",
        error=ArgumentError,
        words="group_size is given and axis is not | in quantize( | fix: axis=-1",
    ),
    wrong(
        lambda x, s: ptir.quantize(x, s, dtype="si8", axis=1, group_size=0),
        "f32[2,6]",
        "f32[2,3]",
        error=ArgumentError,
        words="group_size is 0, expected at least 1 | in quantize(",
    ),
    wrong(
        lambda x, s: ptir.quantize(x, s, dtype="si8", axis=2),
        "f32[2,6]",
        "f32[6]",
        error=ShapeError,
        words="axis 2 is out of range, expected one between -2 and 1 | in quantize(",
    ),
)
