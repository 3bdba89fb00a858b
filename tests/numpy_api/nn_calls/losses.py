"""Calls of losses and distances."""

from __future__ import annotations

import numpy as np

from tests.numpy_api.nn_calls.inputs import (
    CLASSES,
    ENDS_OF,
    LABELS,
    LOG_P,
    MANY_LABELS,
    SHARES,
    SIGNS,
    SOME,
    STEPS,
    TARGETS,
    C,
    Call,
    P,
    X,
    calls,
    normal,
)

LOSSES: list[Call] = [
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
]
