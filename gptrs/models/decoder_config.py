"""`DecoderConfig`, the configuration of decoder language models, and `Family`, how those of one
``model_type`` differ from Llama."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from gptrs.errors import LoadError
from gptrs.lazy_dataclass import dataclass
from gptrs.models.config_fields import Entries, config_from_json
from gptrs.nn.activations import ACTIVATIONS
from gptrs.nn.rotary import Rope, rope_of

SLIDING, FULL = "sliding_attention", "full_attention"


@dataclass(frozen=True)
class DecoderConfig:
    """The fields of ``config.json`` that change what a decoder computes, named as Llama's are.

    A family reads those that it has (`Family.options`); others keep the neutral values here.
    """

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    # Mixture of experts
    num_local_experts: int = 0
    num_experts_per_tok: int = 2
    norm_topk_prob: bool = True
    moe_intermediate_size: int | None = None
    decoder_sparse_step: int = 1
    mlp_only_layers: tuple[int, ...] | None = None
    # Positions
    rope_theta: float | None = None
    rope_local_base_freq: float | None = None
    rope_scaling: Entries | None = None
    rope_parameters: Entries | None = None
    partial_rotary_factor: float | None = None
    original_max_position_embeddings: int | None = None
    no_rope_layers: tuple[int, ...] | None = None
    no_rope_layer_interval: int | None = None
    # Windows
    sliding_window: int | None = None
    use_sliding_window: bool = True
    max_window_layers: int = 0
    sliding_window_pattern: int | None = None
    layer_types: tuple[str, ...] | None = None
    # Factors
    query_pre_attn_scalar: float | None = None
    attention_multiplier: float | None = None
    embedding_multiplier: float = 1.0
    residual_multiplier: float = 1.0
    logits_scaling: float = 1.0
    attn_logit_softcapping: float | None = None
    final_logit_softcapping: float | None = None
    use_parallel_residual: bool = False
    # Bidirectional attention is refused
    use_bidirectional_attention: bool | None = None

    def __post_init__(self) -> None:
        if self.hidden_act not in ACTIVATIONS:
            raise LoadError(
                f"hidden_act is {self.hidden_act!r}, expected one of {', '.join(ACTIVATIONS)}"
            )
        if not 0 <= self.rms_norm_eps < math.inf:
            raise LoadError(f"rms_norm_eps is {self.rms_norm_eps}, expected a number from 0 up")
        if self.use_bidirectional_attention:
            raise LoadError("use_bidirectional_attention is true: attention here is causal")
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise LoadError(f"{name} is {value}, expected at least 1")
        if self.head_dim is None and self.hidden_size % self.num_attention_heads:
            raise LoadError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads"
                f" {self.num_attention_heads}"
            )
        if self.num_local_experts < 0:
            raise LoadError(f"num_local_experts is {self.num_local_experts}, expected 0 or more")
        if self.num_local_experts and self.num_experts_per_tok > self.num_local_experts:
            raise LoadError(
                f"num_experts_per_tok is {self.num_experts_per_tok}, expected at most the"
                f" {self.num_local_experts} experts that there are"
            )
        if self.num_attention_heads % self.key_heads:
            raise LoadError(
                f"num_attention_heads {self.num_attention_heads} is not a multiple of"
                f" num_key_value_heads {self.key_heads}"
            )
        for name in ("layer_types", "no_rope_layers"):
            listed = getattr(self, name)
            if listed is not None and len(listed) < self.num_hidden_layers:
                raise LoadError(
                    f"{name} has {len(listed)} entries, expected {self.num_hidden_layers}"
                )
        for each in self.layer_types or ():
            if each not in (SLIDING, FULL):
                raise LoadError(f"layer_types holds {each!r}, expected {SLIDING!r} or {FULL!r}")
        if SLIDING in (self.layer_types or ()) and self.sliding_window is None:
            raise LoadError(f"layer_types holds {SLIDING!r}, and there is no sliding_window")
        for kind in dict.fromkeys(map(self.layer_type, range(self.num_hidden_layers))):
            self.rope(kind)  # raises where its options are wrong

    @property
    def head_size(self) -> int:
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def key_heads(self) -> int:
        """How many heads of keys and values there are."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def sparse_layers(self) -> tuple[int, ...]:
        """The layers, counted from 0, with experts in place of an MLP."""
        if not self.num_local_experts:
            return ()
        dense = self.mlp_only_layers or ()
        every = range(
            self.decoder_sparse_step - 1, self.num_hidden_layers, self.decoder_sparse_step
        )
        return tuple(layer for layer in every if layer not in dense)

    @property
    def attention_scale(self) -> float:
        """The factor on q·k."""
        if self.attention_multiplier is not None:
            return self.attention_multiplier
        return 1 / math.sqrt(self.query_pre_attn_scalar or self.head_size)

    @property
    def context_length(self) -> int:
        """How many positions there are: with a scaling, as many as it is for."""
        stretched = 0.0
        entries = self._rope_entries(FULL)
        factor, kind = entries.get("factor"), entries.get("rope_type", entries.get("type"))
        if kind == "dynamic" and factor is not None:
            stretched = factor * self.max_position_embeddings
        elif factor is not None and entries.get("original_max_position_embeddings") is not None:
            stretched = factor * entries["original_max_position_embeddings"]
        return max(self.max_position_embeddings, int(stretched))

    def layer_type(self, layer: int) -> str:
        """Whether a layer, counted from 0, attends to a window or to all tokens."""
        if self.layer_types is not None:
            return self.layer_types[layer]
        if self.sliding_window is None or not self.use_sliding_window:
            return FULL
        if self.sliding_window_pattern is not None:
            return SLIDING if (layer + 1) % self.sliding_window_pattern else FULL
        return SLIDING if layer >= self.max_window_layers else FULL

    def window(self, layer: int) -> int | None:
        """How many tokens a layer attends to; None for all."""
        return self.sliding_window if self.layer_type(layer) == SLIDING else None

    def rotates(self, layer: int) -> bool:
        """Whether a layer has rotary positions."""
        if self.no_rope_layers is not None:
            return bool(self.no_rope_layers[layer])
        interval = self.no_rope_layer_interval
        return interval is None or (layer + 1) % interval != 0

    def rope(self, layer_type: str) -> Rope:
        """The rotary frequencies of the layers of a type. Raises `LoadError`."""
        return rope_of(self._rope_entries(layer_type), self.head_size, self.max_position_embeddings)

    def _rope_entries(self, layer_type: str) -> dict[str, Any]:
        """The options of rotary positions, from the entries of old and of new configurations."""
        given: dict[str, Any] = dict(self.rope_parameters or self.rope_scaling or ())
        is_local = layer_type == SLIDING and self.rope_local_base_freq is not None
        if layer_type in given or (FULL in given or SLIDING in given):
            given = dict(given.get(layer_type) or ())
        elif is_local:
            given = {}  # local layers are not scaled
        theta = self.rope_local_base_freq if is_local else self.rope_theta
        for name, value in (
            ("rope_theta", theta),
            ("partial_rotary_factor", self.partial_rotary_factor),
            ("original_max_position_embeddings", self.original_max_position_embeddings),
        ):
            if value is not None:
                given.setdefault(name, value)
        return given


_POSITIVE = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"),
    *("num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings"),
    *("sliding_window", "sliding_window_pattern", "no_rope_layer_interval"),
    *("num_experts_per_tok", "moe_intermediate_size", "decoder_sparse_step"),
)

COMMON_OPTIONS = frozenset(
    [
        *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"),
        *("num_attention_heads", "num_key_value_heads", "head_dim", "hidden_act"),
        *("max_position_embeddings", "rms_norm_eps", "tie_word_embeddings"),
        *("rope_theta", "rope_scaling", "rope_parameters"),
    ]
)
"""Fields that every family has."""

_NOT_COMPUTED = frozenset(
    [
        # of transformers
        *("_name_or_path", "_attn_implementation", "architectures", "model_type", "auto_map"),
        *("torch_dtype", "dtype", "transformers_version", "id2label", "label2id", "problem_type"),
        *("return_dict", "output_attentions", "output_hidden_states", "use_cache"),
        *("cache_implementation", "chunk_size_feed_forward", "is_encoder_decoder", "is_decoder"),
        *("name_or_path", "_sliding_window_pattern", "pretraining_tp", "gradient_checkpointing"),
        "use_return_dict",
        *("tokenizer_class", "task_specific_params", "unsloth_version", "unsloth_fixed"),
        *("_unsloth_version", "quantization_config"),
        # of tokens and generation
        *("bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "max_length"),
        *("decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id"),
        # of training
        *("initializer_range", "attention_dropout", "attn_pdrop", "resid_pdrop", "embd_pdrop"),
        *("hidden_dropout", "classifier_dropout", "residual_dropout", "embedding_dropout"),
        *("output_router_logits", "router_aux_loss_coef", "router_jitter_noise"),
        *("layer_norm_type", "weight_init_std", "transformers.js_config", "runtime"),
    ]
)
"""Entries of configurations that change nothing of what is computed here."""


@dataclass(frozen=True, eq=False)
class Family:
    """How the models of a ``model_type`` differ from Llama."""

    options: tuple[str, ...] = ()
    """Fields of `DecoderConfig` that a configuration may have beside `COMMON_OPTIONS`."""
    defaults: Mapping[str, object] = field(default_factory=dict[str, object])
    """Values where ``config.json`` is silent."""
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other names of fields, which have priority, → their own."""
    norm: Literal["rms", "rms_plus_one", "layer"] = "rms"
    """RMS norm, RMS norm by 1 + weight, or layer norm with a bias."""
    norms: Literal["before", "after", "around"] = "before"
    """Where a block normalises: what attention and MLP read, what they give, or both."""
    qk_norm: Literal["none", "head", "all"] = "none"
    """RMS norm of queries and keys: of each head, or of all heads together."""
    qkv: Literal["separate", "stacked", "by_head"] = "separate"
    """Three projections, one with rows of q, k and v, or one with rows q, k, v of each head."""
    qkv_bias: bool | None = None
    """Whether q, k and v have a bias, if ``attention_bias`` does not say it."""
    mlp: Literal["gated", "stacked", "plain"] = "gated"
    """act(gate) · up by two projections, by one with the rows of both, or act(up) alone."""
    scales_embedding: bool = False
    """Whether embeddings are multiplied by √hidden_size."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of layers in files that differ from Llama's, by the latter."""
    prefix: str = "model."
    """What names in files begin with, but for the head's."""
    nested: str | None = None
    """The entry that holds the language model's part of a larger model's configuration."""

    def stored_name(self, name: str) -> str:
        """The name in files of a parameter."""
        for ours, theirs in self.names.items():
            name = re.sub(rf"(^|\.){re.escape(ours)}\.", rf"\g<1>{theirs}.", name)
        return name if name.startswith("lm_head.") else self.prefix + name

    @property
    def file_renames(self) -> tuple[tuple[re.Pattern[str], str], ...]:
        """Patterns and replacements, from names in files, also those of the bare model, to ours."""
        prefix = (re.compile(f"^{re.escape(self.prefix)}"), "")
        return prefix, *(
            (re.compile(rf"(^|\.){re.escape(theirs)}\."), rf"\g<1>{ours}.")
            for ours, theirs in self.names.items()
        )

    def read(self, data: Mapping[str, Any], file: Path) -> DecoderConfig:
        """The configuration of the entries of ``config.json``.

        Raises `LoadError` naming the file and the entry, also for an entry that is not known.
        """
        inner: Any = None if self.nested is None else data.get(self.nested)
        if isinstance(inner, Mapping):
            tied = {n: data[n] for n in ("tie_word_embeddings",) if n in data}
            data = {**tied, **inner}
        allowed = {*COMMON_OPTIONS, *self.options}
        known = allowed | self.renames.keys() | _NOT_COMPUTED
        for name in sorted(data.keys() - known):
            if data[name] is not None:
                raise LoadError(
                    f"{file}: {name} is {data[name]!r}, an option that is not known here",
                    fix="remove it if it changes nothing of what the model computes",
                )
        given = {name: value for name, value in data.items() if name in known}
        for other, own in self.renames.items():
            if given.get(other) is not None:  # the name that the family's own class reads
                given.pop(own, None)
        said = {self.renames.get(name, name) for name in given}
        given |= {name: value for name, value in self.defaults.items() if name not in said}
        return config_from_json(DecoderConfig, self.renames, given, file)
