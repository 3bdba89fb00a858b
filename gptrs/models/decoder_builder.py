"""Builds a `Decoder` from its configuration, its family and named parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from gptrs.models.decoder_config import DecoderConfig, Family
from gptrs.nn.layers import Embedding, LayerNorm, Linear, RMSNorm
from gptrs.nn.module import ParameterOf

if TYPE_CHECKING:
    from gptrs.models.decoder import MLP, Attention, Block, Decoder

D = TypeVar("D", bound="Decoder")


@dataclass(frozen=True)
class Builder:
    """Names are Llama's; `Family.names` translates them to those of the files."""

    family: Family
    config: DecoderConfig
    parameter: ParameterOf

    def model(self, kind: type[D]) -> D:
        config = self.config
        vocabulary = (config.vocab_size, config.hidden_size)
        embedding = self.parameter(f"{self._named('model.embed_tokens')}.weight", vocabulary)
        head = embedding
        if not config.tie_word_embeddings:
            head = self.parameter("lm_head.weight", vocabulary)
        layers = tuple(self._block(layer) for layer in range(config.num_hidden_layers))
        norm = self._norm(self._named("model.norm"))
        return kind(config, Embedding(embedding), layers, norm, Linear(head))

    def _named(self, name: str) -> str:
        return self.family.names.get(name, name)

    def _linear(self, name: str, wide: int, to: int, bias: bool) -> Linear:
        weight = self.parameter(f"{name}.weight", (to, wide))
        return Linear(weight, self.parameter(f"{name}.bias", (to,)) if bias else None)

    def _norm(self, name: str) -> RMSNorm | LayerNorm:
        shape, eps = (self.config.hidden_size,), self.config.rms_norm_eps
        weight = self.parameter(f"{name}.weight", shape)
        if self.family.norm == "layer":
            return LayerNorm(weight, self.parameter(f"{name}.bias", shape), eps)
        return RMSNorm(weight, eps, plus_one=self.family.norm == "rms_plus_one")

    def _block(self, layer: int) -> Block:
        from gptrs.models.decoder import Block

        at = f"{self._named('model.layers')}.{layer}"
        names: tuple[str | None, ...] = {
            "before": ("input_layernorm", None, "post_attention_layernorm", None),
            "after": (None, "post_attention_layernorm", None, "post_feedforward_layernorm"),
            "around": (
                *("input_layernorm", "post_attention_layernorm"),
                *("pre_feedforward_layernorm", "post_feedforward_layernorm"),
            ),
        }[self.family.norms]
        norms = (None if name is None else self._norm(f"{at}.{name}") for name in names)
        first, second, third, fourth = norms
        around = (first, second, third, fourth)
        return Block(self._attention(layer, at), self._mlp(at), around, self.config)

    def _attention(self, layer: int, at: str) -> Attention:
        from gptrs.models.decoder import Attention

        config, family = self.config, self.family
        width, size = config.hidden_size, config.head_size
        q, k = config.num_attention_heads * size, config.key_heads * size
        bias = config.attention_bias if family.qkv_bias is None else family.qkv_bias
        shapes = {"q_proj": q, "k_proj": k, "v_proj": k}
        if family.qkv != "separate":
            shapes = {"qkv_proj": q + 2 * k}
        qkv = tuple(
            self._linear(f"{at}.{self._named(f'self_attn.{name}')}", width, to, bias)
            for name, to in shapes.items()
        )
        out_name = f"{at}.{self._named('self_attn.o_proj')}"
        out = self._linear(out_name, q, width, config.attention_bias)
        norms = (None, None)
        if family.qk_norm != "none":
            sizes = (size, size) if family.qk_norm == "head" else (q, k)
            norms = tuple(
                RMSNorm(
                    self.parameter(f"{at}.self_attn.{name}.weight", (extent,)),
                    config.rms_norm_eps,
                    plus_one=family.norm == "rms_plus_one",
                )
                for name, extent in zip(("q_norm", "k_norm"), sizes, strict=True)
            )
        return Attention(qkv, out, *norms, config, family, layer)

    def _mlp(self, at: str) -> MLP:
        from gptrs.models.decoder import MLP

        config, family = self.config, self.family
        width, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        shapes = {
            "gated": {"gate_proj": inner, "up_proj": inner},
            "stacked": {"gate_up_proj": 2 * inner},
            "plain": {"up_proj": inner},
        }[family.mlp]
        up = tuple(
            self._linear(f"{at}.{self._named(f'mlp.{name}')}", width, to, bias)
            for name, to in shapes.items()
        )
        down = self._linear(f"{at}.{self._named('mlp.down_proj')}", inner, width, bias)
        return MLP(up, down, config.hidden_act, family)
