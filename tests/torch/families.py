"""Small random models of the families of transformers, compiled and held against eager torch.

    python -m tests.torch.families              # all of them
    python -m tests.torch.families Llama Swin

Prints the relative error of each family, the number of its graphs, and what torch runs in them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch.utils import _pytree as pytree

from gptrs.torch.compiled import noted_calls
from gptrs.torch.dynamo import gptrs
from gptrs.torch.operators import Fallback

Operands = dict[str, torch.Tensor]

_ROWS = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_TEXT = {"vocab_size": 100, "hidden_size": 32, "max_position_embeddings": 64, **_ROWS}
_DECODER = {**_TEXT, "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}
_EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2}
_MIXTURE = {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, **_EXPERTS}
_VISION = {"hidden_size": 32, "image_size": 32, "patch_size": 8, **_ROWS}
_HEADS = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
_LAYERS = {"encoder_layers": 2, "decoder_layers": 2, **_HEADS}
_PAIR = {"d_model": 32, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, **_LAYERS}
_GPT = {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4}
_DISTIL = {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
_SWIN = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 2}
_WAVE = {
    "conv_dim": (32, 32),
    "conv_stride": (5, 2),
    "conv_kernel": (10, 3),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "hidden_size": 32,
    **_ROWS,
}


def _ids(length: int = 12) -> torch.Tensor:
    return torch.randint(3, 100, (2, length))


def _text() -> Operands:
    return {"input_ids": _ids()}


def _pair() -> Operands:
    return {"input_ids": _ids(), "decoder_input_ids": _ids(5)}


def _pixels() -> Operands:
    return {"pixel_values": torch.randn(2, 3, 32, 32)}


def _wave() -> Operands:
    return {"input_values": torch.randn(2, 800)}


@dataclass(frozen=True)
class Family:
    """A family: the end of its class's name, its operands and its configuration."""

    suffix: str
    operands: Callable[[], Operands]
    config: dict[str, Any]


FAMILIES: dict[str, Family] = {
    **{
        name: Family("Model", _text, _TEXT)
        for name in (
            *("Bert", "Roberta", "Electra", "Albert", "RoFormer", "Camembert", "XLMRoberta"),
            *("Ernie", "MegatronBert", "Splinter", "RemBert", "ConvBert", "Data2VecText"),
            *("LayoutLM", "MPNet", "FNet"),
        )
    },
    **{
        name: Family("ForCausalLM", _text, _DECODER)
        for name in (
            *("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Phi", "Phi3", "StableLm"),
            *("Starcoder2", "Olmo", "Olmo2", "Granite", "GPTNeoX", "Cohere", "SmolLM3"),
            "RecurrentGemma",
        )
    },
    "Falcon": Family("ForCausalLM", _text, _TEXT),
    **{
        name: Family("ForCausalLM", _text, {**_DECODER, **_MIXTURE})
        for name in ("Mixtral", "Qwen2Moe", "Qwen3Moe")
    },
    "DistilBert": Family(
        "Model",
        _text,
        {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    ),
    "DebertaV2": Family(
        "Model", _text, {**_TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
    ),
    "GPT2": Family(
        "LMHeadModel", _text, {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4}
    ),
    "GPTJ": Family("ForCausalLM", _text, {**_GPT, "rotary_dim": 4}),
    "Bloom": Family(
        "ForCausalLM", _text, {"vocab_size": 100, "hidden_size": 32, "n_layer": 2, "n_head": 4}
    ),
    "OPT": Family("ForCausalLM", _text, {**_TEXT, "ffn_dim": 64, "word_embed_proj_dim": 32}),
    "Mamba": Family(
        "ForCausalLM",
        _text,
        {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    ),
    "T5": Family(
        "ForConditionalGeneration",
        _pair,
        {"vocab_size": 100, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    ),
    "Bart": Family("Model", _pair, {"vocab_size": 100, "max_position_embeddings": 64, **_PAIR}),
    "Wav2Vec2": Family("Model", _wave, _WAVE),
    "Hubert": Family("Model", _wave, _WAVE),
    "ViT": Family("Model", _pixels, _VISION),
    "DeiT": Family("Model", _pixels, _VISION),
    "Beit": Family("Model", _pixels, {**_VISION, "use_relative_position_bias": True}),
    "Dinov2": Family("Model", _pixels, _VISION),
    "Swin": Family(
        "Model",
        _pixels,
        {
            "embed_dim": 16,
            "depths": [1, 1],
            "num_heads": [2, 2],
            "window_size": 2,
            "image_size": 32,
        },
    ),
    "ConvNext": Family("Model", _pixels, {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}),
    "ResNet": Family(
        "Model", _pixels, {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}
    ),
    "MobileNetV2": Family("Model", _pixels, {"image_size": 32}),
    "Segformer": Family(
        "Model",
        _pixels,
        {
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "sr_ratios": [2, 1],
            "hidden_sizes": [8, 16],
            "num_attention_heads": [1, 2],
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "mlp_ratios": [2, 2],
        },
    ),
}
"""The families by the beginning of their classes' names."""


@dataclass(frozen=True)
class Outcome:
    """The largest relative error of a family's results, its graphs, and what torch runs in them."""

    error: float
    graphs: int
    fallbacks: tuple[Fallback, ...]


def compare(name: str) -> Outcome:
    """Compile a small random model of a family, and compare with eager torch."""
    family, library = FAMILIES[name], transformers
    torch._dynamo.reset()
    torch.manual_seed(0)
    config: Any = getattr(library, f"{name}Config")(**family.config)
    config.use_cache = False
    module = getattr(library, f"{name}{family.suffix}")(config).eval()
    operands = family.operands()
    compiled: Any = torch.compile(module, backend=gptrs)
    with torch.no_grad():
        wanted = _tensors(module(**operands))
        with noted_calls() as calls:
            made = _tensors(compiled(**operands))
    error = max(_error(*pair) for pair in zip(made, wanted, strict=True))
    fallbacks = dict.fromkeys(f for call in calls for f in call.fallbacks)
    return Outcome(error, len(calls), tuple(fallbacks))


def _tensors(value: Any) -> list[torch.Tensor]:
    leaves, _ = pytree.tree_flatten(value.to_tuple() if hasattr(value, "to_tuple") else value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _error(made: torch.Tensor, wanted: torch.Tensor) -> float:
    if not wanted.dtype.is_floating_point:
        return float((made != wanted).any())
    return float((made - wanted).abs().max() / wanted.abs().max())


def main(names: Sequence[str]) -> int:
    """The command."""
    wrong = 0
    warnings.simplefilter("ignore")
    for name in names or FAMILIES:
        found = compare(name)
        wrong += not found.error < 1e-4
        run = "; ".join(f"{f.operator} ({f.reason})" for f in found.fallbacks)
        graphs = "1 graph" if found.graphs == 1 else f"{found.graphs} graphs"
        print(f"{name}: error {found.error:.1e}, {graphs}{f', torch runs {run}' * bool(run)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
