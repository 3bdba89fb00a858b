"""``ptir.nn`` beside ``torch.nn.functional``: the same calls, eager and traced."""

# torch's functions, and ours by name, have no types here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.numpy_api import nn
from tests.support.lazy_torch import F, torch

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


X = normal(2, 4, 6)
L = normal(2, 4, 9)
IMAGES = normal(2, 4, 7, 9)
VOLUMES = normal(1, 2, 5, 6, 7)
P = RANDOM.random((2, 4, 6), np.float32)
CLASSES = RANDOM.integers(0, 4, (2, 6))
SOME = np.where(CLASSES == 1, -100, CLASSES)
SHARES = np.abs(normal(2, 4, 6))
C = np.abs(normal(4)) + 0.5
Q, K, V = normal(2, 4, 6, 8), normal(2, 4, 7, 8), normal(2, 4, 7, 5)
SEEN = RANDOM.random((6, 7)) < 0.5
SEEN[2] = False
GRID, GRID3 = normal(2, 5, 6, 2), normal(1, 3, 4, 2, 3)
SIGNS = np.where(RANDOM.random((2, 4, 6)) < 0.5, np.float32(-1), np.float32(1))
LABELS = (P < 0.5).astype(np.float32)
MANY_LABELS = np.array(
    [[3, 0, -1, 1, 2, 4], [-1, 0, 1, 2, 3, 4], [5, 4, 3, 2, 1, 0], [1, -1, 1, 1, 1, 1]]
)
LOG_P = np.log(RANDOM.dirichlet(np.ones(5), (9, 2))).astype(np.float32)
TARGETS, STEPS, ENDS_OF = np.array([[1, 1, 3, 2], [2, 4, 4, 1]]), np.array([9, 7]), np.array([4, 3])
PADDED = RANDOM.random((2, 7)) < 0.3
OFFSETS, ENDS = np.array([0, 2, 2, 5]), np.array([0, 2, 2, 6])


DRAWN = {
    *("alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"),
    *("gumbel_softmax", "rrelu"),
}
"""Functions that draw numbers: `tests.numpy_api.test_nn_random`."""
OF_JAX = {
    *("dot_product_attention", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity"),
    *("log1mexp", "log_sigmoid", "logmeanexp", "soft_sign", "sparse_plus", "sparse_sigmoid"),
    *("squareplus", "standardize", "swish"),
}
"""Functions of ``jax.nn``: `tests.numpy_api.test_jax_names`."""


class Call(NamedTuple):
    """A call of one function: arrays are traced."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        shown = [list(a.shape) if isinstance(a, np.ndarray) else a for a in self.args]
        named = [
            name if isinstance(a, np.ndarray) else f"{name}={a}" for name, a in self.kwargs.items()
        ]
        return f"{self.name}({', '.join(map(str, [*shown, *named]))})"


def calls(names: str, *args: Any, **kwargs: Any) -> list[Call]:
    return [Call(name, args, kwargs) for name in names.split()]


TABLE: list[Call] = [
    *calls("relu relu6 leaky_relu elu selu celu silu mish gelu hardsigmoid hardswish", X * 3),
    *calls("hardtanh softplus softsign tanhshrink sigmoid logsigmoid tanh softshrink", X * 3),
    *calls("hardshrink", X * 3),
    *calls("softplus logsigmoid elu", X * 30),
    *calls("gelu", X, approximate="tanh"),
    *calls("elu celu", X, 0.7),
    *calls("leaky_relu softshrink hardshrink", X, 0.2),
    *calls("threshold", X, 0.1, 20.0),
    *calls("softplus", X * 9, beta=2, threshold=5),
    *calls("softmax log_softmax softmin", X, dim=1),
    *calls("softmax log_softmax softmin", X, -1, dtype="float64"),
    *calls("glu", X),
    *calls("glu", X, dim=1),
    *calls("prelu", X, C),
    *calls("prelu", X, C[:1]),
    *calls("normalize", X),
    *calls("normalize", X, p=3.0, dim=-1),
    *calls("layer_norm", X, (6,), normal(6), normal(6)),
    *calls("layer_norm", X, (4, 6), normal(4, 6), normal(4, 6)),
    *calls("layer_norm", X, (6,)),
    *calls("rms_norm", X, (6,), normal(6)),
    *calls("rms_norm", X, (4, 6), eps=1e-3),
    *calls("batch_norm", X, normal(4), C, normal(4), normal(4)),
    *calls("batch_norm", IMAGES, None, None, normal(4), normal(4), training=True),
    *calls("group_norm", IMAGES, 2, normal(4), normal(4)),
    *calls("group_norm", X, 4),
    *calls("instance_norm", IMAGES, weight=C, bias=normal(4)),
    *calls("local_response_norm", IMAGES, 3),
    *calls("local_response_norm", X, 2, alpha=0.1, k=2.0),
    *calls("conv1d", L, normal(6, 4, 3), normal(6)),
    *calls("conv1d", L, normal(6, 2, 3), stride=2, padding=1, groups=2),
    *calls("conv2d", IMAGES, normal(6, 4, 3, 2), normal(6), padding=1, dilation=(2, 1)),
    *calls("conv2d", IMAGES, normal(8, 2, 3, 3), stride=2, groups=2, padding="valid"),
    *calls("conv2d", IMAGES, normal(3, 4, 4, 3), padding="same"),
    *calls("conv2d", IMAGES[0], normal(4, 1, 3, 3), normal(4), 1, 1, 1, 4),
    *calls("conv3d", VOLUMES, normal(4, 2, 3, 2, 2), normal(4), padding=(1, 0, 1)),
    *calls("conv3d", VOLUMES, normal(4, 1, 2, 2, 2), stride=2, groups=2),
    *calls("conv_transpose1d", L, normal(4, 3, 3), normal(3), stride=2, output_padding=1),
    *calls("conv_transpose2d", IMAGES, normal(4, 3, 3, 3), normal(3), 2, 1, 1),
    *calls("conv_transpose2d", IMAGES, normal(4, 3, 3, 2), None, (2, 3), 2, 0, 2, (2, 1)),
    *calls("conv_transpose2d", IMAGES, normal(4, 3, 1, 1), None, 1, 1),
    *calls("conv_transpose3d", VOLUMES, normal(2, 2, 2, 3, 2), stride=2),
    *calls("max_pool1d avg_pool1d", L, 3),
    *calls("max_pool1d avg_pool1d", L, 4, 3, 2, ceil_mode=True),
    *calls("max_pool2d avg_pool2d", IMAGES, 3, stride=2, padding=1),
    *calls("max_pool2d avg_pool2d", IMAGES[0], (2, 3), 2, ceil_mode=True),
    *calls("max_pool2d", IMAGES, 3, 2, 1, 2, return_indices=True),
    *calls("avg_pool2d", IMAGES, 3, 2, 1, True, False),
    *calls("avg_pool2d", IMAGES, 3, 2, divisor_override=5),
    *calls("max_pool3d avg_pool3d", VOLUMES, 2, padding=1),
    *calls("adaptive_avg_pool1d adaptive_max_pool1d", L, 4),
    *calls("adaptive_avg_pool2d adaptive_max_pool2d", IMAGES, (3, None)),
    *calls("adaptive_avg_pool2d adaptive_max_pool2d", IMAGES, (7, 3)),
    *calls("adaptive_avg_pool2d", IMAGES, 1),
    *calls("adaptive_avg_pool3d adaptive_max_pool3d", VOLUMES, (2, 4, 7)),
    *calls("lp_pool1d", np.abs(L), 3.0, 2),
    *calls("lp_pool2d", IMAGES, 2.0, 3, stride=2),
    *calls("lp_pool3d", VOLUMES, 2.0, 2),
    *calls("lp_pool2d", IMAGES, float("inf"), 3, 2, True),
    *calls("max_pool1d_with_indices", L, 3, 2, 1),
    *calls("max_pool2d_with_indices", IMAGES, 3, 2, ceil_mode=True),
    *calls("max_pool3d_with_indices", VOLUMES, 2),
    *calls("adaptive_max_pool1d_with_indices", L, 4),
    *calls("adaptive_max_pool2d_with_indices", IMAGES, (3, None)),
    *calls("adaptive_max_pool2d_with_indices", IMAGES, (7, 3)),
    *calls("adaptive_max_pool2d", IMAGES[0], (4, 5), True),
    *calls("adaptive_max_pool3d_with_indices", VOLUMES, (2, 4, 7)),
    *calls("fractional_max_pool2d", IMAGES, 2, 4, None, True, RANDOM.random((2, 4, 2), np.float32)),
    *calls(
        "fractional_max_pool2d_with_indices",
        *(IMAGES, (2, 3), None, (0.6, 0.5), False, RANDOM.random((2, 4, 2), np.float32)),
    ),
    *calls(
        "fractional_max_pool3d fractional_max_pool3d_with_indices",
        *(VOLUMES, 2, (3, 1, 4), None, False, RANDOM.random((1, 2, 3), np.float32)),
    ),
    *calls("max_unpool1d", normal(2, 4, 4), np.array([0, 3, 4, 7]) + np.zeros((2, 4, 1), int), 2),
    *calls("max_unpool1d", normal(4, 2), np.array([[0, 3]] * 4), 3, 2, 1, (4,)),
    *calls("max_unpool2d", normal(1, 2, 2, 2), np.array([0, 3, 9, 14] * 2).reshape(1, 2, 2, 2), 2),
    *calls("max_unpool3d", normal(1, 1, 1, 1, 2), np.array([0, 15]).reshape(1, 1, 1, 1, 2), 2),
    *calls("conv_tbc", normal(7, 2, 4), normal(3, 4, 5), normal(5), 1),
    *(
        call
        for how in ("mean", "sum", "none")
        for call in [
            *calls("mse_loss l1_loss smooth_l1_loss huber_loss", X, P, reduction=how),
            *calls("binary_cross_entropy", P, SHARES.clip(0, 1), reduction=how),
            *calls("binary_cross_entropy_with_logits", X, P, reduction=how),
            *calls("kl_div", X, P, reduction=how),
            *calls("poisson_nll_loss", X, 3 * P, full=True, reduction=how),
            *calls("poisson_nll_loss", P, P, log_input=False, reduction=how),
            *calls("gaussian_nll_loss", X, P, P, full=True, reduction=how),
            *calls("gaussian_nll_loss", X, P, SHARES[..., 0], reduction=how),
            *calls("soft_margin_loss hinge_embedding_loss", X, SIGNS, reduction=how),
            *calls("margin_ranking_loss", X, P, SIGNS, 0.3, reduction=how),
            *calls("multilabel_soft_margin_loss", X, LABELS, normal(6), reduction=how),
            *calls("cosine_embedding_loss", X[0], P[0], SIGNS[0, :, 0], 0.1, reduction=how),
            *calls("triplet_margin_loss", X, P, SHARES, swap=True, reduction=how),
            *calls("triplet_margin_with_distance_loss", X, P, SHARES, reduction=how),
            *calls("multi_margin_loss", X[0], CLASSES[0, :4], reduction=how),
            *calls("multi_margin_loss", X[0], CLASSES[0, :4], 2, 0.7, SHARES[0, 0], reduction=how),
            *calls("multilabel_margin_loss", X[0], MANY_LABELS, reduction=how),
            *calls("ctc_loss", LOG_P, TARGETS, STEPS, ENDS_OF, reduction=how),
            *calls("ctc_loss", LOG_P, TARGETS[TARGETS > 0][:7], STEPS, ENDS_OF, reduction=how),
            *calls("linear_cross_entropy", X[0], normal(5, 6), CLASSES[0, :4], reduction=how),
            *calls("cross_entropy nll_loss", X, CLASSES, reduction=how),
            *calls("cross_entropy nll_loss", X, SOME, C, reduction=how),
            *calls("cross_entropy", X, SOME, C, reduction=how, label_smoothing=0.2),
            *calls("cross_entropy", X, SHARES, C, reduction=how, label_smoothing=0.1),
        ]
    ),
    *calls("cross_entropy nll_loss", X[0].T, CLASSES[0]),
    *calls("cross_entropy", X[0, :, 0], CLASSES[:1, 0].reshape(())),
    *calls("smooth_l1_loss", X, P, beta=0.3),
    *calls("huber_loss", X, P, delta=0.3),
    *calls("kl_div", X, P, reduction="batchmean", log_target=True),
    *calls("binary_cross_entropy_with_logits", X, P, P, pos_weight=SHARES),
    *calls("cosine_similarity", X, P),
    *calls("cosine_similarity", X, X[:1, :1], dim=2),
    *calls("cosine_similarity", X, X[:, :1], dim=1),
    *calls("ctc_loss", LOG_P[:4], TARGETS, np.array([4, 4]), ENDS_OF, 0, "sum", True),
    *calls("ctc_loss", LOG_P[:, 0], TARGETS[0], STEPS[:1].reshape(()), ENDS_OF[:1].reshape(())),
    *calls("multi_margin_loss", X[0, 0], CLASSES[0, :1].reshape(())),
    *calls("multilabel_margin_loss", X[0, 0], MANY_LABELS[0]),
    *calls("pdist", X[0]),
    *calls("pdist", X[0], 1.5),
    *calls("pairwise_distance", X, P),
    *calls("pairwise_distance", X, P, p=1.0, keepdim=True),
    *calls("scaled_dot_product_attention", Q, K, V),
    *calls("scaled_dot_product_attention", Q, K, V, is_causal=True),
    *calls("scaled_dot_product_attention", Q[:, :, :3], K, V, is_causal=True, scale=0.3),
    *calls("scaled_dot_product_attention", Q, K[:, :, :3], V[:, :, :3], is_causal=True),
    *calls("scaled_dot_product_attention", Q, K, V, SEEN),
    *calls("scaled_dot_product_attention", Q, K, V, SEEN[:1] * np.float32(0.5)),
    *calls("scaled_dot_product_attention", Q, K[:, :2], V[:, :2], SEEN, enable_gqa=True),
    *calls("scaled_dot_product_attention", Q, K[:, :2], V[:, :2], is_causal=True, enable_gqa=True),
    *calls("scaled_dot_product_attention", Q[0], K[0], V[0], SEEN),
    *calls("scaled_dot_product_attention", Q[0, 0], K[0, 0], V[0, 0]),
    *calls("scaled_dot_product_attention", Q[None], K[None], V[None], SEEN),
    *calls("scaled_dot_product_attention", Q[None], K[None, :1], V[None, :, :1]),
    *(
        call
        for more in [
            {},
            {"need_weights": False, "attn_mask": SEEN},
            {"attn_mask": SEEN, "key_padding_mask": PADDED},
            {"key_padding_mask": PADDED, "average_attn_weights": False},
            {"attn_mask": normal(6, 6, 7), "key_padding_mask": PADDED},
        ]
        for call in calls(
            "multi_head_attention_forward",
            *(normal(6, 2, 12), normal(7, 2, 12), normal(7, 2, 12), 12, 3),
            *(normal(36, 12) / 4, normal(36), normal(1, 1, 12), normal(1, 1, 12), True, 0.0),
            *(normal(12, 12) / 4, normal(12)),
            **more,
        )
    ),
    *calls(
        "multi_head_attention_forward",
        *(normal(6, 12), normal(7, 5), normal(7, 4), 12, 3, None, None, None, None, False, 0.0),
        *(normal(12, 12), None, True, PADDED[0], True, None, True),
        *(normal(12, 12), normal(12, 5), normal(12, 4)),
    ),
    *calls("linear", X, normal(5, 6), normal(5)),
    *calls("linear", X, normal(6)),
    *calls("bilinear", X, normal(2, 4, 3), normal(5, 6, 3), normal(5)),
    *calls("embedding", CLASSES, normal(4, 5), padding_idx=-1),
    *calls("embedding", CLASSES, normal(4, 5), max_norm=1.0),
    *(
        call
        for mode in ("sum", "mean", "max")
        for call in [
            *calls("embedding_bag", CLASSES, normal(4, 5), mode=mode),
            *calls("embedding_bag", CLASSES, normal(4, 5), mode=mode, padding_idx=2),
            *calls("embedding_bag", CLASSES[0], normal(4, 5), OFFSETS, mode=mode),
            *calls("embedding_bag", CLASSES[0], normal(4, 5), OFFSETS, mode=mode, padding_idx=1),
        ]
    ),
    *calls("embedding_bag", CLASSES, normal(4, 5), mode="sum", per_sample_weights=normal(2, 6)),
    *calls("embedding_bag", CLASSES[0], normal(4, 5), ENDS, include_last_offset=True),
    *calls("one_hot", CLASSES, 5),
    *calls("pad", X, (1, 2)),
    *calls("pad", X, (1, -2, -1, 3), value=2.5),
    *calls("pad", IMAGES, (2, 1, 3, 0), "reflect"),
    *calls("pad", IMAGES, (2, -1, 9, 0), "replicate"),
    *calls("pad", IMAGES, (9, 1, 3, 7), "circular"),
    *calls("pad", X, (3, 5), "reflect"),
    *calls("pad", VOLUMES, (1, 2, 3, 1, 0, 4), "reflect"),
    *calls("pad", VOLUMES, (1, 2, 3, 1, 0, 4), "replicate"),
    *calls("pad", VOLUMES, (1, 2, 3, 1, 0, 4), "circular"),
    *(
        call
        for size in (4, 9, 12, 27)
        for call in [
            *calls("interpolate", L, size),
            *calls("interpolate", L, size, mode="nearest-exact"),
            *calls("interpolate", L, size, mode="area"),
            *calls("interpolate", L, size, mode="linear"),
            *calls("interpolate", L, size, mode="linear", align_corners=True),
        ]
    ),
    *(
        call
        for more in [
            {"size": (14, 18)},
            {"size": (3, 20)},
            {"scale_factor": (1.7, 0.6)},
            {"scale_factor": (1.7, 0.6), "recompute_scale_factor": True},
        ]
        for call in [
            *calls("interpolate", IMAGES, **more),
            *calls("interpolate", IMAGES, mode="bilinear", **more),
            *calls("interpolate", IMAGES, mode="bicubic", **more),
            *calls("interpolate", IMAGES, mode="bilinear", antialias=True, **more),
            *calls("interpolate", IMAGES, mode="bicubic", antialias=True, **more),
            *calls("interpolate", IMAGES, mode="bicubic", align_corners=True, **more),
            *calls("interpolate", IMAGES, mode="area", **more),
        ]
    ),
    *calls("interpolate", VOLUMES, (4, 9, 7), mode="trilinear"),
    *calls("interpolate", VOLUMES, scale_factor=2, mode="trilinear", align_corners=True),
    *calls("interpolate", VOLUMES, scale_factor=(2, 0.7, 1), mode="nearest-exact"),
    *calls("interpolate", CLASSES[None].astype(np.uint8), 9),
    *calls("upsample", IMAGES, scale_factor=2, mode="bilinear", align_corners=True),
    *calls("upsample_nearest upsample_bilinear", IMAGES, (9, 4)),
    *(
        call
        for padding in ("zeros", "border", "reflection")
        for corners in (False, True)
        for call in [
            *calls("grid_sample", IMAGES, GRID, "bilinear", padding, corners),
            *calls("grid_sample", IMAGES, GRID, "nearest", padding, corners),
            *calls("grid_sample", IMAGES, GRID, "bicubic", padding, corners),
            *calls("grid_sample", VOLUMES, GRID3, "bilinear", padding, corners),
            *calls("grid_sample", VOLUMES, GRID3, "nearest", padding, corners),
        ]
    ),
    *(
        call
        for corners in (False, True)
        for call in [
            *calls("affine_grid", normal(2, 2, 3), (2, 4, 5, 6), corners),
            *calls("affine_grid", normal(2, 3, 4), (2, 4, 5, 1, 6), corners),
        ]
    ),
    *calls("unfold", IMAGES, 3),
    *calls("unfold", IMAGES, (2, 3), (2, 1), (1, 0), 2),
    *calls("unfold", IMAGES[0], (1, 3), stride=(2, 3)),
    *calls("fold", normal(2, 12, 35), (6, 8), 2),
    *calls("fold", normal(2, 12, 24), (9, 11), (3, 2), (2, 1), 1, (2, 2)),
    *calls("fold", normal(12, 12), (6, 8), 2, stride=2),
    *calls("pixel_shuffle", normal(2, 3, 18, 4, 5), 3),
    *calls("pixel_unshuffle", normal(2, 3, 4, 6), 2),
    *calls("channel_shuffle native_channel_shuffle", normal(2, 6, 4, 5), 3),
]


def call_with(function: Any, call: Call, change: Any) -> Any:
    def changed(value: Any) -> Any:
        return change(value) if isinstance(value, np.ndarray) else value

    return function(
        *map(changed, call.args), **{name: changed(value) for name, value in call.kwargs.items()}
    )


def compare(found: Any, expected: Any) -> None:
    found = found if isinstance(found, tuple | list) else [found]
    expected = expected if isinstance(expected, tuple | list) else [expected]
    for ours, theirs in zip(found, expected, strict=True):
        if theirs is None:
            assert ours is None
            continue
        assert ours.shape == tuple(theirs.shape)
        assert ours.numpy().dtype == theirs.numpy().dtype
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", TABLE, ids=str)
def test_a_function(call: Call) -> None:
    theirs = call
    if "dtype" in call.kwargs:
        theirs = call._replace(
            kwargs={**call.kwargs, "dtype": getattr(torch, call.kwargs["dtype"])}
        )
    expected = call_with(getattr(F, call.name), theirs, torch.from_numpy)
    function = getattr(ptir.nn, call.name)
    compare(call_with(function, call, ptir.tensor), expected)
    arrays: list[Any] = []
    call_with(lambda *args, **kwargs: None, call, arrays.append)

    def traced(*inputs: Any) -> Any:
        rest = iter(inputs)
        return call_with(function, call, lambda _: next(rest))

    compare(ptir.jit(traced)(*arrays), expected)


@pytest.mark.parametrize("module", nn.MODULES)
def test_a_module_has_the_names_of_the_table(module: str) -> None:
    found: Any = import_module(f"gptrs.numpy_api.nn.{module}")
    assert sorted(found.__all__) == sorted(nn.MODULES[module])
    tested = {call.name for call in TABLE} | DRAWN | OF_JAX
    for name in found.__all__:
        assert getattr(ptir.nn.functional, name) is getattr(found, name)
        assert getattr(found, name).__doc__
        assert name in tested


def test_inplace_is_refused() -> None:
    with pytest.raises(ArgumentError, match="immutable"):
        ptir.nn.relu(X, inplace=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ptir.nn, "no_such_function")


@pytest.mark.parametrize("name", ["layer_norm", "conv2d", "cross_entropy", "batch_norm"])
def test_parameters_are_those_of_torch(name: str) -> None:
    if name == "conv2d":  # a builtin of torch, without a signature
        expected = ["input", "weight", "bias", "stride", "padding", "dilation", "groups"]
    else:
        expected = list(inspect.signature(getattr(F, name)).parameters)
    assert list(inspect.signature(getattr(ptir.nn, name)).parameters) == expected
