"""GPT-2 (Radford et al., 2019), as Hugging Face's ``GPT2LMHeadModel`` defines and stores it.

Pre-norm decoder blocks with learned positions and Conv1D projections; the head may be tied to the
embedding. One ``__call__`` is prefill, decode and plain forward, with or without a `KVCache`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.errors import LoadError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.lazy_dataclass import dataclass
from gptrs.models.base import Model
from gptrs.nn.activations import ACTIVATIONS
from gptrs.nn.cache import CacheLayout, KVCache
from gptrs.nn.layers import Conv1D, Embedding, LayerNorm, Linear
from gptrs.nn.module import Module


@dataclass(frozen=True)
class GPT2Config:
    """The fields of ``config.json`` that change what the model computes."""

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    tie_word_embeddings: bool = True
    add_cross_attention: bool = False

    def __post_init__(self) -> None:
        if self.activation_function not in ACTIVATIONS:
            raise LoadError(
                f"activation_function is {self.activation_function!r}, expected one of"
                f" {', '.join(ACTIVATIONS)}"
            )
        if not 0 <= self.layer_norm_epsilon < math.inf:
            raise LoadError(
                f"layer_norm_epsilon is {self.layer_norm_epsilon}, expected a finite number from 0"
                " up"
            )
        if self.add_cross_attention:
            raise LoadError("add_cross_attention is true: cross-attention is not supported")
        for name in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise LoadError(f"{name} is {value}, expected at least 1")
        if self.n_embd % self.n_head:
            raise LoadError(f"n_embd {self.n_embd} is not a multiple of n_head {self.n_head}")

    @property
    def head_size(self) -> int:
        return self.n_embd // self.n_head

    def attention_scale(self, layer: int) -> float:
        """The factor on q·k of layer number ``layer``, counted from 0."""
        scale = 1 / math.sqrt(self.head_size) if self.scale_attn_weights else 1.0
        return scale / (layer + 1) if self.scale_attn_by_inverse_layer_idx else scale


class Attention(Module):
    """Causal self-attention over [batch, tokens, width]."""

    c_attn: Conv1D
    c_proj: Conv1D
    heads: int
    scale: float
    layer: int

    def __call__(self, x: Tensor, cache: KVCache | None) -> tuple[Tensor, KVCache | None]:
        batch, tokens, width = x.shape
        qkv = self.c_attn(x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]  # each [batch, heads, tokens, head size]
        if cache is None:
            y = ptir.attention(q, k, v, causal=True, scale=self.scale)
        else:
            y, cache = cache.attend(self.layer, q, k, v, scale=self.scale)
        return self.c_proj(y.permute(0, 2, 1, 3).reshape(batch, tokens, width)), cache


class MLP(Module):
    """Two projections with an activation between them."""

    c_fc: Conv1D
    c_proj: Conv1D
    activation_function: str

    def __call__(self, x: Tensor) -> Tensor:
        return self.c_proj(ACTIVATIONS[self.activation_function](self.c_fc(x)))


class Block(Module):
    """Pre-norm block: attention, then the MLP, each with a residual connection."""

    ln_1: LayerNorm
    attn: Attention
    ln_2: LayerNorm
    mlp: MLP

    def __call__(self, x: Tensor, cache: KVCache | None) -> tuple[Tensor, KVCache | None]:
        y, cache = self.attn(self.ln_1(x), cache)
        x = x + y
        return x + self.mlp(self.ln_2(x)), cache


class GPT2(Model):
    """The language model: tokens → logits of the next token at each position."""

    task: ClassVar = "causal_lm"
    config_type: ClassVar = GPT2Config
    config_renames: ClassVar = {
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "max_position_embeddings": "n_positions",
        "n_ctx": "n_positions",
    }
    renames: ClassVar = ((re.compile(r"^transformer\."), ""),)
    ignored: ClassVar = re.compile(r"^h\.\d+\.attn\.(bias|masked_bias)$")  # old causal masks

    config: GPT2Config
    wte: Embedding
    wpe: Embedding
    h: tuple[Block, ...]
    ln_f: LayerNorm
    lm_head: Linear

    @classmethod
    def build(
        cls, config: GPT2Config, parameter: Callable[[str, tuple[int, ...]], Parameter]
    ) -> GPT2:
        """Build the model from ``parameter(name, shape)``."""
        width, inner = config.n_embd, config.n_inner or 4 * config.n_embd

        def norm(name: str) -> LayerNorm:
            shape = (width,)
            weight, bias = parameter(f"{name}.weight", shape), parameter(f"{name}.bias", shape)
            return LayerNorm(weight, bias, config.layer_norm_epsilon)

        def project(name: str, wide: int, to: int) -> Conv1D:
            return Conv1D(parameter(f"{name}.weight", (wide, to)), parameter(f"{name}.bias", (to,)))

        def block(layer: int) -> Block:
            at = f"h.{layer}"
            attention = Attention(
                project(f"{at}.attn.c_attn", width, 3 * width),
                project(f"{at}.attn.c_proj", width, width),
                config.n_head,
                config.attention_scale(layer),
                layer,
            )
            mlp = MLP(
                project(f"{at}.mlp.c_fc", width, inner),
                project(f"{at}.mlp.c_proj", inner, width),
                config.activation_function,
            )
            return Block(norm(f"{at}.ln_1"), attention, norm(f"{at}.ln_2"), mlp)

        vocabulary = (config.vocab_size, width)
        wte = parameter("wte.weight", vocabulary)
        tied = config.tie_word_embeddings
        return cls(
            config,
            Embedding(wte),
            Embedding(parameter("wpe.weight", (config.n_positions, width))),
            tuple(block(layer) for layer in range(config.n_layer)),
            norm("ln_f"),
            Linear(wte if tied else parameter("lm_head.weight", vocabulary)),
        )

    @staticmethod
    def copies(config: GPT2Config) -> dict[str, str]:
        """Tied tensors: names that a checkpoint may contain besides, or instead of, the equal
        one."""
        return {"lm_head.weight": "wte.weight"} if config.tie_word_embeddings else {}

    @property
    def context_length(self) -> int:
        return self.config.n_positions

    @property
    def vocab_size(self) -> int:
        return self.config.vocab_size

    def init_cache(
        self, starts: NDArray[np.int32], capacity: int, layout: CacheLayout | None = None
    ) -> KVCache:
        """An empty cache for ``len(starts)`` rows; row b's text begins at column starts[b]."""
        config = self.config
        heads, size = config.n_head, config.head_size
        return KVCache.empty(config.n_layer, starts, heads, capacity, size, layout)

    @ptir.jit(
        name="gpt2",
        donate="cache",
        dynamic={
            "tokens": {0: "B", 1: "S"},
            "cache.keys": {1: "B", 3: "C"},
            "cache.values": {1: "B", 3: "C"},
            "cache.start": {0: "B"},
        },
    )
    def __call__(
        self,
        tokens: Tensor,
        cache: KVCache | None = None,
        *,
        logits: Literal["all", "last"] = "all",
    ) -> tuple[Tensor, KVCache | None]:
        """Logits [batch, tokens or 1, vocabulary] for integer tokens [batch, tokens].

        With a cache the tokens continue the ones that it has seen, and the next cache is returned.
        """
        count = tokens.shape[1]
        positions = ptir.iota(shape=(1, count), axis=1) if cache is None else cache.positions(count)
        x = self.wte(tokens) + self.wpe(positions)  # [batch, tokens, width]
        for block in self.h:
            x, cache = block(x, cache)
        if logits == "last":
            x = x[:, -1:]
        y = self.lm_head(self.ln_f(x))
        return y, None if cache is None else cache.advanced(count)
