"""Mixture of experts: the sparse MLP of a block, of which each token uses a few experts.

Attributes are named as transformers' modules are, whose experts are stacked in one tensor. Files
have a tensor for each expert instead, too; `expert_stacks` says which, and loading joins them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gptrs import ptir
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.models.base import Renames, Stacks
from gptrs.nn.activations import ACTIVATIONS
from gptrs.nn.layers import Linear, widened
from gptrs.nn.module import Module

MIXTRAL_RENAMES: Renames = (
    (re.compile(r"(^|\.)block_sparse_moe\."), r"\1mlp."),
    (re.compile(r"(\.experts\.\d+)\.w1\."), r"\1.gate_proj."),
    (re.compile(r"(\.experts\.\d+)\.w2\."), r"\1.down_proj."),
    (re.compile(r"(\.experts\.\d+)\.w3\."), r"\1.up_proj."),
)
"""Mixtral's names of tensors in files, by those of the other families."""


class Experts(Module):
    """act(gate) · up, projected back, of the chosen experts of each token, weighted and summed."""

    gate_up_proj: Parameter  # [experts, 2 · inner, width]
    down_proj: Parameter  # [experts, width, inner]
    hidden_act: str

    def __call__(self, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        """x [..., width]; ids and weights [..., K]."""
        both = ptir.grouped_linear(x, ids, widened(self.gate_up_proj))
        half = both.shape[-1] // 2
        inner = ACTIVATIONS[self.hidden_act](both[..., :half]) * both[..., half:]
        y = ptir.grouped_linear(inner, ids, widened(self.down_proj))  # [..., K, width]
        return ptir.reduce_sum(y * weights.unsqueeze(-1), axes=-2)


class SparseMLP(Module):
    """A router, and the experts that it chooses for each token. Source: arXiv:2401.04088."""

    gate: Linear
    experts: Experts
    experts_per_token: int
    norm_topk_prob: bool
    """Whether the weights of a token's experts are divided by their sum."""

    def __call__(self, x: Tensor) -> Tensor:
        weights, ids = ptir.top_k(ptir.softmax(self.gate(x)), k=self.experts_per_token)
        if self.norm_topk_prob:
            weights = weights / ptir.reduce_sum(weights, axes=-1, keepdims=True)
        return self.experts(x, ids, weights)


def expert_stacks(places: Iterable[str], count: int) -> Stacks:
    """The tensors of single experts that files may have in place of those of all ``count`` of them,
    for the sparse MLPs with these names."""
    stacks: Stacks = {}
    for place in places:
        each = [f"{place}.experts.{number}" for number in range(count)]
        stacks[f"{place}.experts.gate_up_proj"] = tuple(
            (f"{expert}.gate_proj.weight", f"{expert}.up_proj.weight") for expert in each
        )
        stacks[f"{place}.experts.down_proj"] = tuple(
            (f"{expert}.down_proj.weight",) for expert in each
        )
    return stacks
