"""Decoder language models in the manner of Llama, as Hugging Face's classes define and store them.

One description for all: a family (`gptrs.models.families`) is a table of its differences. One
``__call__`` is prefill, decode and plain forward, with or without a `KVCache`.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.ir.tensor import Tensor
from gptrs.models.base import Model, Renames, Stacks
from gptrs.models.decoder_builder import BlockBuilder
from gptrs.models.decoder_config import DecoderConfig, Family
from gptrs.models.decoder_layers import Block, Norm
from gptrs.models.experts import expert_stacks
from gptrs.nn.cache import CacheLayout, KVCache
from gptrs.nn.layers import Embedding, Linear
from gptrs.nn.module import ParameterOf


class Decoder(Model):
    """The language model: tokens → logits of the next token at each position."""

    task: ClassVar = "causal_lm"
    config_type: ClassVar = DecoderConfig
    ignored: ClassVar = re.compile(r".*\.(rotary_emb\.inv_freq|self_attn\.(masked_)?bias)$")
    family: ClassVar[Family]
    more_renames: ClassVar[Renames] = ()
    """Patterns and replacements before those of the family."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.renames = (*cls.more_renames, *cls.family.file_renames)

    config: DecoderConfig
    embed_tokens: Embedding
    layers: tuple[Block, ...]
    norm: Norm
    lm_head: Linear

    @classmethod
    def read_config(cls, data: Mapping[str, Any], file: Path) -> DecoderConfig:
        """The configuration of the entries of ``config.json``. Raises `LoadError`."""
        return cls.family.read(data, file)

    @classmethod
    def build(cls, config: DecoderConfig, parameter: ParameterOf) -> Self:
        """Build the model from ``parameter(name, shape)``."""
        vocabulary = (config.vocab_size, config.hidden_size)
        embedding = parameter("embed_tokens.weight", vocabulary)
        tied = config.tie_word_embeddings
        head = embedding if tied else parameter("lm_head.weight", vocabulary)
        builder = BlockBuilder(cls.family, config, parameter)
        layers = tuple(builder.block(layer) for layer in range(config.num_hidden_layers))
        return cls(config, Embedding(embedding), layers, builder.norm("norm"), Linear(head))

    @classmethod
    def stored_name(cls, name: str) -> str:
        """The name of a parameter in files of transformers."""
        return cls.family.stored_name(name)

    @staticmethod
    def copies(config: DecoderConfig) -> dict[str, str]:
        """A tied head, which files may contain besides, or instead of, the embedding."""
        return {"lm_head.weight": "embed_tokens.weight"} if config.tie_word_embeddings else {}

    @staticmethod
    def stacks(config: DecoderConfig) -> Stacks:
        """The matrices of experts, which files may hold one by one."""
        places = (f"layers.{layer}.mlp" for layer in config.sparse_layers)
        return expert_stacks(places, config.num_local_experts)

    @property
    def context_length(self) -> int:
        return self.config.context_length

    @property
    def vocab_size(self) -> int:
        return self.config.vocab_size

    @property
    def longest_in_chunks(self) -> int:
        """As `gptrs.text.causal_model.longest_in_chunks` says."""
        layers = range(self.config.num_hidden_layers)
        ropes = map(self.config.rope, dict.fromkeys(map(self.config.layer_type, layers)))
        return min((rope.longest_in_chunks for rope in ropes), default=sys.maxsize)

    def init_cache(
        self, starts: NDArray[np.int32], capacity: int, layout: CacheLayout | None = None
    ) -> KVCache:
        """An empty cache for ``len(starts)`` rows; row b's text begins at column starts[b]."""
        config = self.config
        layers, heads = config.num_hidden_layers, config.key_heads
        windows = tuple(map(config.window, range(layers)))
        size = config.head_size
        return KVCache.empty(layers, starts, heads, capacity, size, layout, windows)

    @ptir.jit(
        name="decoder",
        donate="cache",
        dynamic={
            "tokens": {0: "B", 1: "S"},
            "cache.keys": {1: "B", 3: "C"},
            "cache.values": {1: "B", 3: "C"},
            "cache.local_keys": {1: "B", 3: "R"},
            "cache.local_values": {1: "B", 3: "R"},
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
        config, count = self.config, tokens.shape[1]
        if cache is None:
            positions, lengths = ptir.iota(shape=(1, count), axis=1), count
        else:
            positions, lengths = cache.positions(count), cache.lengths(count)
        kinds = dict.fromkeys(map(config.layer_type, range(config.num_hidden_layers)))
        tables = {kind: config.rope(kind).tables(positions, lengths) for kind in kinds}
        x = self.embed_tokens(tokens)  # [batch, tokens, width]
        factor = config.embedding_multiplier
        if self.family.scales_embedding:
            factor *= math.sqrt(config.hidden_size)
        x = x if factor == 1.0 else x * factor
        for layer, block in enumerate(self.layers):
            turns = tables[config.layer_type(layer)] if config.rotates(layer) else None
            x, cache = block(x, turns, cache)
        if logits == "last":
            x = x[:, -1:]
        y = self.lm_head(self.norm(x))
        if config.logits_scaling != 1.0:
            y = y / config.logits_scaling
        if (cap := config.final_logit_softcapping) is not None:
            y = ptir.tanh(y / cap) * cap
        return y, None if cache is None else cache.advanced(count)
