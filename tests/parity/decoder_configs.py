"""Tiny configurations of every family of decoders: a table, and random ones."""

from __future__ import annotations

import random
from typing import Any

SIZES: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 1e4,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
}
_LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0, 1.5, 2.0, 2.5],
    "long_factor": [2.0, 3.0, 4.0, 5.0],
    "original_max_position_embeddings": 8,
}
_SCALINGS: dict[str, dict[str, Any]] = {
    "default": {"rope_type": "default", "rope_theta": 3e4},
    "linear": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.5},
    "dynamic": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0},
    "llama3": _LLAMA3,
    "yarn": _YARN,
    "yarn, all options": {
        **_YARN,
        "beta_fast": 16.0,
        "beta_slow": 2.0,
        "mscale": 0.7,
        "mscale_all_dim": 0.4,
        "truncate": False,
    },
    "yarn, attention_factor": {**_YARN, "attention_factor": 1.3},
    "longrope": _LONGROPE,
    "longrope, factor": {**_LONGROPE, "factor": 3.0},
}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama, biases": {"attention_bias": True, "mlp_bias": True, "head_dim": 6},
    "llama, tied": {"tie_word_embeddings": True, "num_key_value_heads": 4, "hidden_act": "gelu"},
    **{
        f"llama, {name}": {
            "rope_parameters": scaling,
            "max_position_embeddings": 16 if name == "dynamic" else 64,
        }
        for name, scaling in _SCALINGS.items()
    },
    "mistral": {"sliding_window": 4},
    "mistral, all": {"sliding_window": None, "head_dim": 12},
    "ministral": {
        "sliding_window": 4,
        "head_dim": 8,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    },
    "mixtral": {"num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": 4},
    "mixtral, all": {
        "num_local_experts": 4,
        "num_experts_per_tok": 3,
        "head_dim": 12,
        "tie_word_embeddings": True,
        "hidden_act": "gelu",
    },
    "qwen2": {},
    "qwen2, window": {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
    "qwen3": {"head_dim": 16, "attention_bias": True},
    "qwen3_moe": {
        "head_dim": 16,
        "num_experts": 6,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 20,
        "norm_topk_prob": True,
    },
    "qwen3_moe, dense layers": {
        "num_experts": 7,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 36,
        "num_hidden_layers": 6,
        "decoder_sparse_step": 2,
        "mlp_only_layers": [3],
        "attention_bias": True,
        "use_sliding_window": True,
        "sliding_window": 4,
    },
    "gemma": {"head_dim": 16},
    "gemma2": {
        "head_dim": 16,
        "sliding_window": 4,
        "query_pre_attn_scalar": 20,
        "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 3.0,
    },
    "gemma2, no caps": {
        "head_dim": 16,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
    },
    "gemma3_text": {"head_dim": 16, "sliding_window": 4, "num_hidden_layers": 7},
    "phi3": {"sliding_window": 5},
    "phi3, longrope": {"rope_parameters": _LONGROPE, "original_max_position_embeddings": 8},
    "phi3, partial": {"rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 1e4}},
    "smollm3": {"num_hidden_layers": 5},
    "olmo2": {},
    "granite": {
        "embedding_multiplier": 3.0,
        "residual_multiplier": 0.5,
        "attention_multiplier": 0.3,
        "logits_scaling": 2.0,
    },
    "starcoder2": {"sliding_window": 4},
    "starcoder2, no biases": {"use_bias": False, "tie_word_embeddings": False},
    "gpt_neox": {},
    "gpt_neox, one after the other": {"use_parallel_residual": False},
    "gpt_neox, all rotated": {
        "rope_parameters": {"partial_rotary_factor": 1.0},
        "hidden_act": "relu",
    },
}
"""Fields beside `SIZES`, by names that begin with the ``model_type``."""

ALIKE = {"gemma3": "gemma3_text"}
"""Other types whose configurations are nested, or the same."""


def fields_of(name: str) -> dict[str, Any]:
    """The entries of the ``config.json`` of a row of `CONFIGS`."""
    kind = name.partition(",")[0]
    fields = {**SIZES, **CONFIGS[name], "model_type": kind}
    if kind == "gpt_neox":
        fields.pop("num_key_value_heads")
    return fields


def random_fields(draw: random.Random) -> dict[str, Any]:
    """The entries of a random ``config.json``: a row of the table with other sizes, positions,
    activations and windows."""
    fields = fields_of(draw.choice([*CONFIGS]))
    heads, groups = draw.choice([(1, 1), (2, 1), (3, 3), (4, 2), (6, 2), (8, 1)])
    size = draw.choice([2, 4, 6, 8, 16, 20])
    layers = draw.choice([1, 2, 3, 6])
    fields |= {
        "vocab_size": draw.choice([64, 99, 257]),
        "intermediate_size": draw.choice([1, 16, 37, 64]),
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "num_hidden_layers": layers,
        "tie_word_embeddings": draw.random() < 0.5,
    }
    kind = fields["model_type"]
    activation = "hidden_activation" if kind in ("gemma2", "gemma3_text") else "hidden_act"
    fields[activation] = draw.choice(["silu", "gelu", "relu", "gelu_pytorch_tanh"])
    own_size = {"qwen3", "gemma", "gemma2", "gemma3_text", "mistral", "ministral", "llama"}
    own_size |= {"mixtral", "qwen3_moe"}
    fields.pop("head_dim", None)
    fields["hidden_size"] = heads * size
    if kind == "ministral" or (kind in own_size and draw.random() < 0.7):
        fields |= {"head_dim": draw.choice([2, 8, 12]), "hidden_size": draw.choice([8, 24, 36])}
        if fields["hidden_size"] % heads:
            fields["hidden_size"] = heads * 8
    if kind == "gpt_neox":
        fields.pop("num_key_value_heads")
        fields["rope_parameters"] = {"partial_rotary_factor": 1.0, "rope_theta": 1e4}
    if "num_experts_per_tok" in fields:
        experts = draw.choice([1, 2, 8, 19])
        count = "num_local_experts" if kind == "mixtral" else "num_experts"
        fields |= {
            count: experts,
            "num_experts_per_tok": draw.choice([1, min(2, experts), experts]),
        }
    if kind == "qwen3_moe":
        dense = [layer for layer in range(layers) if draw.random() < 0.3]
        fields |= {
            "moe_intermediate_size": draw.choice([1, 16, 37]),
            "norm_topk_prob": draw.random() < 0.5,
            "decoder_sparse_step": draw.choice([1, 1, 2]),
            "mlp_only_layers": dense,
        }
    if "layer_types" in fields:
        kinds = ("full_attention", "sliding_attention")
        fields["layer_types"] = [draw.choice(kinds) for _ in range(layers)]
    if fields.get("sliding_window"):
        fields["sliding_window"] = draw.choice([2, 3, 8, 40])
    rope = fields.get("rope_parameters", {})
    if "short_factor" in rope:
        pairs = fields.get("head_dim", size) // 2
        lists = {
            n: [draw.uniform(1, 5) for _ in range(pairs)] for n in ("short_factor", "long_factor")
        }
        fields["rope_parameters"] = {**rope, **lists}
    elif rope.get("rope_type") == "dynamic" and fields.get("head_dim", size) == 2:
        fields["rope_parameters"] = _SCALINGS["linear"]
    elif kind == "phi3":
        fields.pop("rope_parameters", None)
    return fields
