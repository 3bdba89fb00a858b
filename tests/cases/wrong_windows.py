"""Invalid calls of window ops and of the composites of image and language models."""

# The lambdas are called with arrays of the types beside them, and wrongly on purpose.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

from gptrs.errors import ArgumentError, DTypeError, ElementError, ShapeError
from gptrs.ptir import ops as ptir
from tests.cases.wrong import wrong

GEOMETRY = (
    wrong(
        lambda x: ptir.extract_patches(x, window=(2, 5)),
        "f32[1,4,4,3]",
        error=ShapeError,
        words="axis 2: a window that reaches over 5 elements does not fit extent 4 | (0, 0)"
        " | in extract_patches(x: f32[1,4,4,3] | fix: pad more",
    ),
    wrong(
        lambda x: ptir.reduce_window(
            x, reduce="add", window=(3,), dilation=(3,), padding=((1, 1),)
        ),
        "f32[1,4,3]",
        error=ShapeError,
        words="axis 1: a window that reaches over 7 | does not fit extent 4 with padding (1, 1)"
        " | in reduce_window(x: f32[1,4,3]",
    ),
    wrong(
        lambda x: ptir.max_pool2d(x, window=(2, 2)),
        "f32[1,0,4,3]",
        error=ShapeError,
        words="axis 1: a window | extent 0 | in reduce_window( | in max_pool2d(x: f32[1,0,4,3]",
    ),
    wrong(
        lambda x: ptir.extract_patches(x, window=(2, 2)),
        "f32[4,4,3]",
        error=ShapeError,
        words="window has 2 entries, expected 1: one per spatial axis | in extract_patches(",
    ),
    wrong(
        lambda x: ptir.extract_patches(x, window=(2,), padding=((0, 0), (0, 0))),
        "f32[1,4,3]",
        error=ShapeError,
        words="padding has 2 entries, expected 1",
    ),
    wrong(
        lambda x: ptir.extract_patches(x, window=()),
        "f32[4]",
        error=ShapeError,
        words="x has rank 1, expected [N, spatial..., C]",
    ),
    wrong(
        lambda x: ptir.extract_patches(x, window=(0,)),
        "f32[1,4,3]",
        error=ShapeError,
        words="window is (0,), expected integers of at least 1",
    ),
    wrong(
        lambda x: ptir.extract_patches(x, window=(2,), strides=(0,)),
        "f32[1,4,3]",
        error=ShapeError,
        words="strides is (0,), expected integers of at least 1",
    ),
    wrong(
        lambda x: ptir.extract_patches(x, window=(2,), dilation=(1.5,)),
        "f32[1,4,3]",
        error=ShapeError,
        words="dilation is (1.5,), expected integers",
    ),
    wrong(
        lambda x: ptir.extract_patches(x, window=(2,), padding=((0, -1),)),
        "f32[1,4,3]",
        error=ShapeError,
        words="padding is ((0, -1),), expected a pair (low, high) of at least 0",
    ),
    wrong(
        lambda x: ptir.extract_patches(x, window=(2, 2), padding=(1, 1)),
        "f32[1,4,4,3]",
        error=ShapeError,
        words="padding is (1, 1), expected a pair (low, high)",
    ),
    wrong(
        lambda x: ptir.extract_patches(x, window=2),
        "f32[1,4,3]",
        error=ArgumentError,
        words="window is 2, expected a tuple or list | in extract_patches(",
    ),
    wrong(
        lambda x: ptir.extract_patches(x, window=(2,), value=0.5),
        "si32[1,4,3]",
        error=DTypeError,
        words="the float 0.5 does not fit a tensor of dtype si32",
    ),
    wrong(
        lambda x: ptir.reduce_window(x, reduce="mean", window=(2,)),
        "f32[1,4,3]",
        error=ArgumentError,
        words="reduce is 'mean', expected one of add, max, min, mul | in reduce_window(",
    ),
    wrong(
        lambda x: ptir.reduce_window(x, reduce="max", window=(2,)),
        "cf32[1,4,3]",
        error=DTypeError,
        words="found dtype cf32, expected a int or uint or float",
    ),
    wrong(
        lambda x: ptir.reduce_window(x, reduce="add", window=(2,)),
        "i1[1,4,3]",
        error=DTypeError,
        words="found dtype i1",
    ),
    wrong(
        lambda x: ptir.reduce_window(x, reduce="max", window=(2,), out_dtype="f64"),
        "f32[1,4,3]",
        error=ArgumentError,
        words="accum_dtype and out_dtype are for add and mul, not for max | fix: cast",
    ),
)

IMAGES = (
    wrong(
        lambda x, w: ptir.conv2d(x, w),
        "f32[4,4,3]",
        "f32[2,2,3,5]",
        error=ShapeError,
        words="x has rank 3, expected 4: [N, H, W, C] | in conv2d(x: f32[4,4,3] | fix: x[None]",
    ),
    wrong(
        lambda x, w: ptir.conv2d(x, w),
        "f32[1,4,4,3]",
        "f32[2,2,5]",
        error=ShapeError,
        words="weight has rank 3, expected [KH, KW, C/groups, O]",
    ),
    wrong(
        lambda x, w: ptir.conv2d(x, w),
        "f32[1,3,4,4]",
        "f32[2,2,3,5]",
        error=ShapeError,
        words="x has 4 channels and weight takes 3 and gives 5 with groups = 1 | fix: weight is",
    ),
    wrong(
        lambda x, w: ptir.conv2d(x, w, groups=2),
        "f32[1,4,4,6]",
        "f32[2,2,3,5]",
        error=ShapeError,
        words="gives 5 with groups = 2 | a multiple of groups outputs",
    ),
    wrong(
        lambda x, w: ptir.conv2d(x, w, groups=0),
        "f32[1,4,4,0]",
        "f32[2,2,3,5]",
        error=ShapeError,
        words="groups = 0",
    ),
    wrong(
        lambda x, w, b: ptir.conv2d(x, w, b),
        "f32[1,4,4,3]",
        "f32[2,2,3,5]",
        "f32[1]",
        error=ShapeError,
        words="bias has shape [1], expected [5]",
    ),
    wrong(
        lambda x, w: ptir.conv2d(x, w),
        "f32[1,4,4,3]",
        "bf16[2,2,3,5]",
        error=DTypeError,
        words="f32 and bf16 | in conv2d(x: f32[1,4,4,3] | fix: ptir.cast",
    ),
    wrong(
        lambda x, w: ptir.conv2d(x, w),
        "f32[1,4,4,3]",
        "f32[5,2,3,5]",
        error=ShapeError,
        words="axis 1: a window that reaches over 5 | in conv2d(",
    ),
    wrong(
        lambda x, w: ptir.depthwise_conv2d(x, w),
        "f32[1,4,4,3]",
        "f32[2,2,1,3]",
        error=ShapeError,
        words="weight has shape [2,2,1,3], expected [KH, KW, 3, M] | in depthwise_conv2d(",
    ),
    wrong(
        lambda x, w, b: ptir.depthwise_conv2d(x, w, b),
        "f32[1,4,4,3]",
        "f32[2,2,3,2]",
        "f32[3]",
        error=ShapeError,
        words="bias has shape [3], expected [6] | in depthwise_conv2d(",
    ),
    wrong(
        lambda x, m, v: ptir.batch_norm(x, m, v),
        "f32[1,3,4,4]",
        "f32[3]",
        "f32[3]",
        error=ShapeError,
        words="mean has shape [3], expected [4], one per channel | in batch_norm(x: f32[1,3,4,4]",
    ),
    wrong(
        lambda x, m, v, b: ptir.batch_norm(x, m, v, None, b),
        "f32[2,3]",
        "f32[3]",
        "f32[3]",
        "f32[1]",
        error=ShapeError,
        words="bias has shape [1], expected [3]",
    ),
    wrong(
        lambda x: ptir.avg_pool2d(x, window=(2, 2)),
        "si32[1,4,4,3]",
        error=DTypeError,
        words="si32 | in avg_pool2d(x: si32[1,4,4,3] | fix: ",
    ),
    wrong(
        lambda x: ptir.global_avg_pool2d(x),
        "f32[4,4,3]",
        error=ShapeError,
        words="x has rank 3, expected 4 | in global_avg_pool2d(",
    ),
)

LANGUAGE = (
    wrong(
        lambda x, w: ptir.rms_norm(x, w),
        "f32[2,3]",
        "f32[1]",
        error=ShapeError,
        words="weight has shape [1], expected [3] | in rms_norm(x: f32[2,3]",
    ),
    wrong(
        lambda x: ptir.rms_norm(x),
        "f32[]",
        error=ShapeError,
        words="axis -1 is out of range | in rms_norm(x: f32[]",
    ),
    wrong(
        lambda x, c, s: ptir.rotary(x, c, s),
        "f32[2,5]",
        "f32[2,2]",
        "f32[2,2]",
        error=ShapeError,
        words="the last axis of x has extent 5, expected pairs | in rotary(x: f32[2,5]",
    ),
    wrong(
        lambda x, c, s: ptir.rotary(x, c, s),
        "f32[3,8]",
        "f32[3,4]",
        "f32[3,2]",
        error=ShapeError,
        words="sin has 2 entries in its last axis, expected 4 (one per pair) or 8",
    ),
    wrong(
        lambda x, c, s: ptir.rotary(x, c, s),
        "f32[1,8]",
        "f32[3,4]",
        "f32[3,4]",
        error=ShapeError,
        words="cos of shape [3,4] does not broadcast to x of shape [1,8]",
    ),
    wrong(
        lambda x, c, s: ptir.rotary(x, c, s),
        "bf16[3,8]",
        "f32[3,4]",
        "f32[3,4]",
        error=DTypeError,
        words="bf16 and f32 | in rotary( | fix: ptir.cast",
    ),
    wrong(
        lambda x, i, w: ptir.grouped_linear(x, i, w),
        "f32[3,8]",
        "si64[3,2]",
        "f32[4,8]",
        error=ShapeError,
        words="weight has shape [4,8] and ids [3,2], expected [experts, out, in] and [...,",
    ),
    wrong(
        lambda x, i, w: ptir.grouped_linear(x, i, w),
        "f32[3,7]",
        "si64[3,2]",
        "f32[4,6,8]",
        error=ShapeError,
        words="x has shape [3,7], expected [3,8], one row for all experts of a token, or [3,2,8]",
    ),
    wrong(
        lambda x, t: ptir.cross_entropy(x, t, reduction="max"),
        "f32[3,5]",
        "si64[3] 0..4",
        error=ArgumentError,
        words="reduction is 'max', expected mean, sum, none | in cross_entropy(",
    ),
    wrong(
        lambda x, t: ptir.cross_entropy(x, t),
        "f32[3,5]",
        "f32[3,5]",
        error=DTypeError,
        words="found dtype f32, expected a int or uint dtype",
    ),
    wrong(
        lambda x, t: ptir.cross_entropy(x, t),
        "f32[3,5,2]",
        "si64[3,2] 0..4",
        error=ShapeError,
        words="targets have shape [3,2], expected [3,5] | fix: classes are the last axis",
    ),
    wrong(
        lambda x, t: ptir.cross_entropy(x, t),
        "f32[3,5]",
        "si64[3] 5..5",
        error=ElementError,
        words="index 5 is out of range for axis 1 of extent 5 | gather",
    ),
    wrong(
        lambda x, t: ptir.cross_entropy(x, t, ignore_index=7),
        "f32[3,5]",
        "si64[3] -100..-100",
        error=ElementError,
        words="index -100 is out of range for axis 1 of extent 5 | gather",
    ),
)

WINDOWED = (*GEOMETRY, *IMAGES, *LANGUAGE)
