"""``torch.nn.functional``, called as ``ptir.nn``."""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs import ptir
from tests.support.op_info.row import NAMED, SUMMED, F, Row, unless

DRAWN = "random numbers"
WIDE: dict[str, Any] = {**SUMMED, "magnitude": 64}
"""Sums of products of two random numbers, of up to hundreds of terms."""

SUMS = """
    softmin softmin.with_dtype cross_entropy linear_cross_entropy linear_cross_entropy.chunked
    linear_cross_entropy.chunked_none adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    avg_pool1d avg_pool2d avg_pool3d binary_cross_entropy_with_logits binary_cross_entropy
    layer_norm rms_norm local_response_norm hardswish interpolate.linear interpolate.bilinear
    interpolate.bicubic interpolate.trilinear interpolate.area upsample_bilinear soft_margin_loss
    margin_ranking_loss leaky_relu multilabel_soft_margin_loss linear bilinear glu elu prelu celu
    selu silu hardsigmoid logsigmoid mish softsign tanhshrink triplet_margin_loss smooth_l1_loss
    l1_loss softplus mse_loss ctc_loss cosine_embedding_loss nll_loss hinge_embedding_loss
    huber_loss poisson_nll_loss pairwise_distance kl_div
"""
MOVED = """
    pad.constant pad.reflect pad.replicate pad.replicate_negative pad.circular unfold pixel_shuffle
    pixel_unshuffle channel_shuffle relu relu6 threshold hardshrink hardtanh max_pool1d
    max_unpool1d max_unpool1d.grad max_unpool2d max_unpool2d.grad max_unpool3d max_unpool3d.grad
    interpolate.nearest interpolate.nearest-exact upsample_nearest
    feature_alpha_dropout.without_train
"""
"""Elements moved or chosen: equal bits."""

OUTSIDE = "padding and hidden keys are times 0 or left out, by the kernel that torch takes"
SCALED = "x · scale + shift, where ∞ · 0 may occur, and not (x − mean) · scale"
LAST_NAN = "the position of the last NaN, not of the first"
NO_PLACE = "NaN as a place is a weight of NaN or none, by the kernel that torch takes"
DIFFERENT: dict[str, str] = {
    OUTSIDE: "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
    SCALED: "group_norm instance_norm",
    LAST_NAN: "max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
    NO_PLACE: "grid_sample",
    "negative variances are an error": "gaussian_nll_loss",
    "NaN is different from 0, and counts for p = 0": "pdist",
}
"""Rows whose special values give something else than torch's, by what that is."""


def _named(info: str) -> Callable[..., Any]:
    name = info.partition(".")[0]
    return lambda *args, **kwargs: getattr(ptir.nn, name)(*args, **kwargs)


def _rows(infos: str, **more: Any) -> tuple[Row, ...]:
    return tuple(Row(f"nn.functional.{info}", _named(info), F, **more) for info in infos.split())


def _not_a_scalar(name: str) -> Callable[..., Any]:
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        unless(not x.ndim, "an axis of a scalar")
        return getattr(ptir.nn, name)(x, *args, **kwargs)

    return call


def _dropout(name: str) -> Callable[..., Any]:
    def call(x: Any, p: float = 0.5, training: bool = True, **kwargs: Any) -> Any:
        unless(training and 0 < p < 1, DRAWN)
        return getattr(ptir.nn, name)(x, p, training, **kwargs)

    return call


def _rrelu(x: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Any:
    unless(training, DRAWN)
    return ptir.nn.rrelu(x, lower, upper)


def _batch_norm(x: Any, *args: Any, **kwargs: Any) -> Any:
    unless(x.ndim < 2, "no channels")
    return ptir.nn.batch_norm(x, *args, **kwargs)


def _attention(*args: Any, dropout_p: float = 0.0, **kwargs: Any) -> Any:
    unless(dropout_p, DRAWN)
    return ptir.nn.scaled_dot_product_attention(*args, **kwargs)


def _one_hot(x: Any, num_classes: int = -1) -> Any:
    unless(num_classes == -1, "the greatest class decides, which is not known while tracing")
    return ptir.nn.one_hot(x, num_classes)


def _gelu(x: Any, approximate: str = "none") -> Any:
    return ptir.nn.gelu(x, approximate)


ROWS: tuple[Row, ...] = (
    *_rows(SUMS, **SUMMED),
    *_rows(MOVED),
    *(
        row
        for differs, infos in DIFFERENT.items()
        for row in _rows(infos, special=False, differs=differs, **WIDE)
    ),
    Row("nn.functional.gelu", _gelu, **NAMED),
    Row("nn.functional.normalize", _not_a_scalar("normalize"), **SUMMED),
    *(
        Row(
            f"nn.functional.{name}",
            _not_a_scalar(name),
            special=False,
            differs=differs,
            **SUMMED,
        )
        for name, differs in (
            ("cosine_similarity", "∞ / ∞, which torch divides in another order"),
            ("multi_margin_loss", "0 for max(0, NaN)"),
            ("multilabel_margin_loss", "0 for max(0, NaN)"),
        )
    ),
    *(
        Row(f"nn.functional.{name}", _dropout(name))
        for name in ("dropout", "dropout2d", "dropout3d", "alpha_dropout")
    ),
    Row("nn.functional.rrelu", _rrelu, **SUMMED),
    Row("nn.functional.one_hot", _one_hot, ("si64",)),
    Row(
        "nn.functional.embedding", lambda w, ids, **more: ptir.nn.embedding(ids, w, **more), **NAMED
    ),
    Row(
        "nn.functional.embedding_bag",
        lambda w, ids, *rest, **more: ptir.nn.embedding_bag(ids, w, *rest, **more),
        special=False,
        differs="the greatest of NaN and numbers, by the order of rows",
        **SUMMED,
    ),
    Row("nn.functional.batch_norm", _batch_norm, special=False, differs=SCALED, **SUMMED),
    Row(
        "nn.functional.scaled_dot_product_attention",
        _attention,
        special=False,
        differs=OUTSIDE,
        **SUMMED,
    ),
)
