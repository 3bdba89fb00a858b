"""``ptir.nn``: the functions of ``torch.nn.functional``, under its names and signatures.

Tensors have torch's layout: channels come second, classes too. A function records the ops and
composites that there are (``softmax``, ``layer_norm``, ``attention``, ``conv2d``, ...), so that
programs look as if written with them. Integers are computed as f32. ``ptir.nn.functional`` is this
namespace too. Modules are imported on first use.
"""

from __future__ import annotations

import sys
from typing import Any

from gptrs.ir.names import unknown_name
from gptrs.locks import late_import

MODULES: dict[str, tuple[str, ...]] = {
    "activations": (
        *("celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh"),
        *("leaky_relu", "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6", "selu"),
        *("sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh"),
        *("tanhshrink", "threshold"),
    ),
    "adaptive_pooling": (
        *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
        *("adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d"),
        *("adaptive_max_pool2d_with_indices", "adaptive_max_pool3d"),
        *("adaptive_max_pool3d_with_indices", "fractional_max_pool2d"),
        *("fractional_max_pool2d_with_indices", "fractional_max_pool3d"),
        *("fractional_max_pool3d_with_indices",),
    ),
    "attention": ("scaled_dot_product_attention",),
    "convolutions": (
        *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"),
        *("conv_tbc", "conv_transpose3d"),
    ),
    "distances": ("cosine_similarity", "pairwise_distance", "pdist"),
    "embeddings": ("embedding", "embedding_bag", "one_hot"),
    "grid_sampling": ("affine_grid", "grid_sample"),
    "interpolation": ("interpolate", "upsample", "upsample_bilinear", "upsample_nearest"),
    "jax_functions": (
        *("dot_product_attention", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh"),
        *("identity", "log1mexp", "log_sigmoid", "logmeanexp", "soft_sign", "sparse_plus"),
        *("sparse_sigmoid", "squareplus", "standardize", "swish"),
    ),
    "likelihoods": ("ctc_loss", "gaussian_nll_loss", "poisson_nll_loss"),
    "linear_maps": ("bilinear", "linear"),
    "losses": (
        *("binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy"),
        *("huber_loss", "kl_div", "l1_loss", "linear_cross_entropy", "mse_loss", "nll_loss"),
        *("smooth_l1_loss",),
    ),
    "margin_losses": (
        *("cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss"),
        *("multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss"),
        *("soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss"),
    ),
    "multi_head": ("multi_head_attention_forward",),
    "norms": (
        *("batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm"),
        *("normalize", "rms_norm"),
    ),
    "padding": ("pad",),
    "patches": ("fold", "unfold"),
    "pooling": (
        *("avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d"),
        *("max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices"),
        *("max_pool3d", "max_pool3d_with_indices"),
    ),
    "shuffles": (
        *("channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle"),
    ),
    "stochastic": (
        *("alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d"),
        *("feature_alpha_dropout", "gumbel_softmax", "rrelu"),
    ),
    "unpooling": ("max_unpool1d", "max_unpool2d", "max_unpool3d"),
}
"""The names of each module, its ``__all__``."""

_PLACES = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """The function called ``name``, or this namespace under torch's name."""
    if name == "functional":
        return sys.modules[__name__]
    if name not in _PLACES:
        raise unknown_name("ptir.nn", name)
    return getattr(late_import(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*_PLACES, "functional"})
