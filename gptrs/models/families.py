"""Families of decoder language models: what distinguishes each from Llama, as tables.

`gptrs.models.decoder_config.Family` explains the entries. Defaults are those of the configuration
classes of transformers, which ``config.json`` files leave out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from gptrs.models.decoder import Decoder
from gptrs.models.decoder_config import DecoderConfig, Family
from gptrs.models.experts import MIXTRAL_RENAMES

_WINDOW = ("sliding_window", "layer_types")
_QWEN_WINDOW = (*_WINDOW, "use_sliding_window", "max_window_layers")
_QWEN = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
_MISTRAL = {"intermediate_size": 14336, "num_key_value_heads": 8, "sliding_window": 4096}
_GEMMA: dict[str, object] = {
    "hidden_act": "gelu_pytorch_tanh",
    "head_dim": 256,
    "tie_word_embeddings": True,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
}
_GEMMA_OPTIONS = (
    *(*_WINDOW, "sliding_window_pattern", "attention_bias", "query_pre_attn_scalar"),
    *("attn_logit_softcapping", "final_logit_softcapping", "use_bidirectional_attention"),
)


class Llama(Decoder):
    """Llama 1, 2 and 3. Source: arXiv:2302.13971, arXiv:2407.21783."""

    family: ClassVar = Family(options=("attention_bias", "mlp_bias"))


class Mistral(Decoder):
    """Mistral: a window in every layer. Source: arXiv:2310.06825."""

    family: ClassVar = Family(options=_WINDOW, defaults=_MISTRAL)


class Mixtral(Decoder):
    """Mixtral: a few of several experts for each token. Source: arXiv:2401.04088."""

    more_renames: ClassVar = MIXTRAL_RENAMES
    family: ClassVar = Family(
        options=("sliding_window", "num_local_experts", "num_experts_per_tok"),
        defaults={
            "intermediate_size": 14336,
            "num_key_value_heads": 8,
            "max_position_embeddings": 131072,
            "rms_norm_eps": 1e-5,
            "rope_theta": 1e6,
            "num_local_experts": 8,
        },
        renames={"num_experts": "num_local_experts"},
    )


class Qwen2(Decoder):
    """Qwen2 and 2.5: biases of q, k and v. Source: arXiv:2407.10671."""

    family: ClassVar = Family(
        options=_QWEN_WINDOW,
        defaults={**_QWEN, "max_position_embeddings": 32768, "intermediate_size": 22016},
        qkv_bias=True,
    )


class Qwen3(Decoder):
    """Qwen3: normalised queries and keys. Source: arXiv:2505.09388."""

    family: ClassVar = Family(
        options=(*_QWEN_WINDOW, "attention_bias"),
        defaults={**_QWEN, "head_dim": 128, "max_position_embeddings": 32768},
        qk_norm="head",
    )


class Qwen3Moe(Decoder):
    """Qwen3 with experts: small ones, and MLPs in some layers. Source: arXiv:2505.09388."""

    family: ClassVar = Family(
        options=(
            *("sliding_window", "use_sliding_window", "attention_bias", "num_local_experts"),
            *("num_experts_per_tok", "norm_topk_prob", "moe_intermediate_size"),
            *("decoder_sparse_step", "mlp_only_layers"),
        ),
        defaults={
            "vocab_size": 151936,
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "num_hidden_layers": 24,
            "num_key_value_heads": 4,
            "max_position_embeddings": 32768,
            "use_sliding_window": False,
            "sliding_window": 4096,
            "num_local_experts": 128,
            "num_experts_per_tok": 8,
            "norm_topk_prob": False,
            "moe_intermediate_size": 768,
        },
        renames={"num_experts": "num_local_experts"},
        qk_norm="head",
    )

    @classmethod
    def read_config(cls, data: Mapping[str, Any], file: Path) -> DecoderConfig:
        """As for every decoder; where there is a window, every layer has it."""
        return super().read_config({n: data[n] for n in data if n != "max_window_layers"}, file)


class Gemma(Decoder):
    """Gemma: scaled embeddings, norms by 1 + weight. Source: arXiv:2403.08295."""

    family: ClassVar = Family(
        options=("attention_bias", "use_bidirectional_attention"),
        defaults={
            "hidden_act": "gelu_pytorch_tanh",
            "head_dim": 256,
            "tie_word_embeddings": True,
            "max_position_embeddings": 8192,
        },
        norm="rms_plus_one",
        scales_embedding=True,
    )

    @classmethod
    def read_config(cls, data: Mapping[str, Any], file: Path) -> DecoderConfig:
        """As for every decoder; "gelu" of old files means its approximation by tanh, and their
        ``hidden_activation`` nothing."""
        data = {name: value for name, value in data.items() if name != "hidden_activation"}
        if data.get("hidden_act") == "gelu":
            data["hidden_act"] = "gelu_pytorch_tanh"
        return super().read_config(data, file)


class Gemma2(Decoder):
    """Gemma 2: soft caps, every second layer with a window. Source: arXiv:2408.00118."""

    family: ClassVar = Family(
        options=_GEMMA_OPTIONS,
        defaults={
            **_GEMMA,
            "max_position_embeddings": 8192,
            "sliding_window_pattern": 2,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
        },
        renames={"hidden_activation": "hidden_act"},
        norm="rms_plus_one",
        norms="around",
        scales_embedding=True,
    )


class Gemma3(Decoder):
    """Gemma 3, its language model: five local layers to a global one, normalised queries and keys.
    Source: arXiv:2503.19786."""

    more_renames: ClassVar = (
        (re.compile(r"^(model\.)?language_model\.(?!lm_head\.)"), ""),
        (re.compile(r"^language_model\.(?=lm_head\.)"), ""),
    )
    ignored: ClassVar = re.compile(
        rf"(vision_tower|multi_modal_projector)\.|{Decoder.ignored.pattern}"  # of images
    )
    family: ClassVar = Family(
        options=(*_GEMMA_OPTIONS, "rope_local_base_freq"),
        defaults={
            **_GEMMA,
            "max_position_embeddings": 131072,
            "sliding_window_pattern": 6,
            "rope_theta": 1e6,
            "rope_local_base_freq": 1e4,
        },
        renames={"hidden_activation": "hidden_act"},
        norm="rms_plus_one",
        norms="around",
        qk_norm="head",
        scales_embedding=True,
        nested="text_config",
    )


class Phi3(Decoder):
    """Phi-3 and 3.5 mini, Phi-4: stacked projections. Source: arXiv:2404.14219."""

    family: ClassVar = Family(
        options=(*_WINDOW, "original_max_position_embeddings", "partial_rotary_factor"),
        defaults={"rms_norm_eps": 1e-5, "max_position_embeddings": 4096},
        qkv="stacked",
        mlp="stacked",
    )


class SmolLM3(Decoder):
    """SmolLM3: every fourth layer without rotary positions. Source: its model card."""

    family: ClassVar = Family(
        options=(
            *(*_WINDOW, "use_sliding_window", "attention_bias", "mlp_bias"),
            *("no_rope_layers", "no_rope_layer_interval"),
        ),
        defaults={
            "num_key_value_heads": 4,
            "max_position_embeddings": 32768,
            "no_rope_layer_interval": 4,
            "use_sliding_window": False,
            "tie_word_embeddings": True,
            "rope_theta": 2e6,
        },
    )


class Olmo2(Decoder):
    """OLMo 2: norms after attention and MLP. Source: arXiv:2501.00656."""

    family: ClassVar = Family(
        options=("attention_bias",),
        defaults={"rms_norm_eps": 1e-5},
        norms="after",
        qk_norm="all",
    )


class Granite(Decoder):
    """Granite 3: factors on embeddings, residuals, attention and logits. Source: its model card."""

    family: ClassVar = Family(
        options=(
            *("attention_bias", "mlp_bias", "embedding_multiplier", "residual_multiplier"),
            *("attention_multiplier", "logits_scaling"),
        ),
        defaults={"attention_multiplier": 1.0},
    )


class Starcoder2(Decoder):
    """StarCoder2: layer norms, an MLP without a gate, biases. Source: arXiv:2402.19173."""

    family: ClassVar = Family(
        options=(*_WINDOW, "attention_bias", "mlp_bias"),
        defaults={
            "hidden_act": "gelu_pytorch_tanh",
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-5,
            "num_key_value_heads": 2,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
        },
        renames={"norm_epsilon": "rms_norm_eps", "use_bias": "attention_bias"},
        norm="layer",
        mlp="plain",
        names={"mlp.up_proj": "mlp.c_fc", "mlp.down_proj": "mlp.c_proj"},
    )

    @classmethod
    def read_config(cls, data: Mapping[str, Any], file: Path) -> DecoderConfig:
        """As for every decoder; ``use_bias`` is for the MLP, too."""
        return super().read_config({**data, "mlp_bias": data.get("use_bias", True)}, file)


class GPTNeoX(Decoder):
    """GPT-NeoX and Pythia: attention and MLP side by side. Source: arXiv:2204.06745."""

    more_renames: ClassVar = ((re.compile(r"^embed_out\."), "lm_head."),)
    family: ClassVar = Family(
        options=("attention_bias", "use_parallel_residual", "partial_rotary_factor"),
        defaults={
            "vocab_size": 50432,
            "hidden_size": 6144,
            "intermediate_size": 24576,
            "num_hidden_layers": 44,
            "num_attention_heads": 64,
            "hidden_act": "gelu",
            "rms_norm_eps": 1e-5,
            "attention_bias": True,
            "mlp_bias": True,
            "use_parallel_residual": True,
            "partial_rotary_factor": 0.25,
        },
        renames={
            "layer_norm_eps": "rms_norm_eps",
            "rotary_pct": "partial_rotary_factor",
            "rotary_emb_base": "rope_theta",
        },
        norm="layer",
        qkv="by_head",
        mlp="plain",
        names={
            "embed_tokens": "embed_in",
            "norm": "final_layer_norm",
            "self_attn.qkv_proj": "attention.query_key_value",
            "self_attn.o_proj": "attention.dense",
            "self_attn": "attention",
            "mlp.up_proj": "mlp.dense_h_to_4h",
            "mlp.down_proj": "mlp.dense_4h_to_h",
        },
        prefix="gpt_neox.",
    )
