"""Calls of attention, embeddings, linear layers and resampling."""

from __future__ import annotations

import numpy as np

from tests.numpy_api.nn_calls.inputs import (
    CLASSES,
    ENDS,
    GRID,
    GRID3,
    IMAGES,
    OFFSETS,
    PADDED,
    SEEN,
    VOLUMES,
    Call,
    K,
    L,
    Q,
    V,
    X,
    calls,
    normal,
)

ATTENTION: list[Call] = [
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
