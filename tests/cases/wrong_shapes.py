"""Invalid calls: shapes, axes and indices that do not fit."""

# The lambdas are called with arrays of the types beside them, and wrongly on purpose.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

from gptrs.errors import ElementError, ShapeError
from gptrs.ptir import ops as ptir
from tests.cases.wrong import wrong

SHAPES = (
    wrong(
        lambda x, y: x * y,
        "f32[2,3]",
        "f32[2,4]",
        error=ShapeError,
        words="[2,3] and [2,4] do not broadcast | axis -1 is 3 in one and 4 | in mul(x: f32[2,3]",
    ),
    wrong(
        lambda x, y: x @ y,
        "f32[2,3]",
        "f32[4,5]",
        error=ShapeError,
        words="axis 1 of lhs has extent 3, axis 0 of rhs 4 | in matmul(x: f32[2,3] | fix: ",
    ),
    wrong(
        lambda x, y: x @ y,
        "f32[]",
        "f32[3]",
        error=ShapeError,
        words="rank 0 | in matmul(x: f32[] | fix: x * y",
    ),
    wrong(
        lambda x: ptir.softmax(x, axis=2),
        "f32[2,3]",
        error=ShapeError,
        words="axis 2 is out of range, expected one between -2 and 1 | in softmax(x: f32[2,3]",
    ),
    wrong(
        lambda x: x.sum(axis=-3),
        "f32[2,3]",
        error=ShapeError,
        words="axis -3 is out of range | in reduce_sum(x: f32[2,3]",
    ),
    wrong(
        lambda x: x.sum(axis=(0, -2)),
        "f32[2,3]",
        error=ShapeError,
        words="(0, -2) name an axis twice | in reduce_sum(",
    ),
    wrong(
        lambda x: ptir.layer_norm(x),
        "f32[]",
        error=ShapeError,
        words="axis -1 is out of range | the operand has rank 0 | in layer_norm(x: f32[]",
    ),
    wrong(
        lambda x: ptir.transpose(x, perm=(0, 0)),
        "f32[2,3]",
        error=ShapeError,
        words="perm must name each of the 2 axes once, found (0, 0) | in transpose(x: f32[2,3]",
    ),
    wrong(
        lambda x: ptir.transpose(x, perm=(0,)),
        "f32[2,3]",
        error=ShapeError,
        words="perm must name each of the 2 axes once | in transpose(",
    ),
    wrong(
        lambda x: x.reshape(4, 2),
        "f32[2,3]",
        error=ShapeError,
        words="[2,3] has 6 elements, [4,2] has 8 | in reshape(x: f32[2,3]",
    ),
    wrong(
        lambda x: x.reshape(4, -1),
        "f32[2,3]",
        error=ShapeError,
        words="[2,3] (6 elements) does not fit shape (4, -1) | in reshape(",
    ),
    wrong(
        lambda x: x.reshape(-1, -1),
        "f32[2,3]",
        error=ShapeError,
        words="more than one extent open | in reshape(",
    ),
    wrong(
        lambda x: x.reshape(-1, 0), "f32[0,3]", error=ShapeError, words="does not determine | in re"
    ),
    wrong(
        lambda x: ptir.broadcast_to(x, shape=(2, 4)),
        "f32[3]",
        error=ShapeError,
        words="[3] and [2,4] do not broadcast | in broadcast_to(x: f32[3]",
    ),
    wrong(
        lambda x: ptir.broadcast_to(x, shape=(3,)),
        "f32[2,3]",
        error=ShapeError,
        words="[2,3] does not broadcast to [3] | in broadcast_to(",
    ),
    wrong(
        lambda x: x.max(),
        "si32[0]",
        error=ShapeError,
        words="no greatest or least of no elements in si32 | in reduce_max(x: si32[0]",
    ),
    wrong(
        lambda x: x.min(axis=0), "ui8[0,3]", error=ShapeError, words="no greatest | in reduce_min("
    ),
    wrong(
        lambda x: ptir.argmax(x, axis=1),
        "f32[3,0]",
        error=ShapeError,
        words="axis 1 has extent 0 | in argmax(x: f32[3,0]",
    ),
    wrong(
        lambda x, y: ptir.concat((x, y), axis=1),
        "f32[2,3]",
        "f32[3,3]",
        error=ShapeError,
        words="[3,3] does not continue [2,3] along axis 1 | in concat(xs: (f32[2,3]",
    ),
    wrong(
        lambda x, y: ptir.concat((x, y)),
        "f32[2,3]",
        "f32[3]",
        error=ShapeError,
        words="[3] does not continue [2,3] | in concat(",
    ),
    wrong(
        lambda x: ptir.slice(x, starts=(1,), sizes=(3,)),
        "f32[3]",
        error=ShapeError,
        words="axis 0: 3 elements from 1 in steps of 1 do not fit extent 3 | in slice(x: f32[3]",
    ),
    wrong(
        lambda x: ptir.slice(x, starts=(0,), sizes=(3,)),
        "f32[3,2]",
        error=ShapeError,
        words="starts, sizes and strides need 2 entries each | in slice(",
    ),
    wrong(
        lambda x: x[3], "f32[3]", error=ShapeError, words="index 3 is out of range for axis 0 of"
    ),
    wrong(lambda x: x[0, 0], "f32[3]", error=ShapeError, words="2 indices, x has 1 axes"),
    wrong(
        lambda x: ptir.pad(x, low=(-1,), high=(0,)),
        "f32[3]",
        error=ShapeError,
        words="padding is negative | in pad( | fix: use slice",
    ),
    wrong(lambda x: ptir.tile(x, reps=(2, 2)), "f32[3]", error=ShapeError, words="reps | in tile("),
    wrong(
        lambda x, i: ptir.gather(x, i, axis=1),
        "f32[2,3]",
        "si64[3,1] 0..0",
        error=ShapeError,
        words="index of shape [3,1] does not lie in x of shape [2,3] | in gather(x: f32[2,3]",
    ),
    wrong(
        lambda x, i, s: ptir.scatter_add(x, i, s, axis=0),
        "f32[4]",
        "si64[3] 0..0",
        "f32[2]",
        error=ShapeError,
        words="index of shape [3] does not lie in source of shape [2] | in scatter_add(",
    ),
    wrong(
        lambda x, i: ptir.take(x, i),
        "f32[]",
        "si32[2] 0..0",
        error=ShapeError,
        words="rank 0: there is no axis to take from | in take(x: f32[]",
    ),
    wrong(
        lambda x: ptir.dynamic_slice(x, (0,), sizes=(4,)),
        "f32[3]",
        error=ShapeError,
        words="a box of shape [4] does not lie in x of shape [3] | in dynamic_slice(",
    ),
    wrong(
        lambda q, k, v: ptir.attention(q, k, v),
        "f32[1,3,2,4]",
        "f32[1,2,2,4]",
        "f32[1,2,2,4]",
        error=ShapeError,
        words="3 query heads cannot share 2 key heads evenly | in attention(q: f32[1,3,2,4]",
    ),
    wrong(
        lambda x, w: ptir.linear(x, w),
        "f32[2,3]",
        "f32[3]",
        error=ShapeError,
        words="weight has rank 1, expected 2 | in linear(x: f32[2,3]",
    ),
)

ELEMENTS = (
    wrong(
        lambda x: x // 0,
        "si32[3]",
        error=ElementError,
        words="integer division by zero | div | fix: select a divisor",
    ),
    wrong(
        lambda x, y: x // y,
        "si32[3]",
        "si32[3] 0..0",
        error=ElementError,
        words="integer division by zero | div",
    ),
    wrong(
        lambda x, y: x % y,
        "ui4[3]",
        "ui4[] 0..0",
        error=ElementError,
        words="integer division by zero | remainder",
    ),
    wrong(
        lambda x, y: x**y,
        "si32[3]",
        "si32[3] -2..-1",
        error=ElementError,
        words="negative integer power | pow",
    ),
    wrong(
        lambda x, y: x << y,
        "si32[3]",
        "si32[3] -2..-1",
        error=ElementError,
        words="negative number of bits | shift_left",
    ),
    wrong(
        lambda x, i: ptir.take(x, i),
        "f32[5,2]",
        "si32[3] 5..5",
        error=ElementError,
        words="index 5 is out of range for axis 0 of extent 5 | take | fix: clamp the indices",
    ),
    wrong(
        lambda x, i: ptir.take(x, i),
        "f32[5,2]",
        "si32[3] -1..-1",
        error=ElementError,
        words="index -1 is out of range | take",
    ),
    wrong(
        lambda x, i: ptir.gather(x, i, axis=1),
        "f32[2,3]",
        "si64[2,2] 3..3",
        error=ElementError,
        words="index 3 is out of range for axis 1 of extent 3 | gather",
    ),
    wrong(
        lambda x, i: ptir.scatter_add(x, i, x, axis=0),
        "f32[3]",
        "si32[3] 7..7",
        error=ElementError,
        words="index 7 is out of range for axis 0 of extent 3 | scatter_add",
    ),
    wrong(
        lambda w, i: ptir.embedding(w, i),
        "f32[5,2]",
        "si32[3] 9..9",
        error=ElementError,
        words="index 9 is out of range | take",
    ),
)
