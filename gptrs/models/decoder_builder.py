"""Builds the blocks of a `Decoder` from its configuration, its family and named parameters."""

from __future__ import annotations

from gptrs.lazy_dataclass import dataclass
from gptrs.models.decoder_config import DecoderConfig, Family
from gptrs.models.decoder_layers import MLP, Attention, Block, Norm
from gptrs.models.experts import Experts, SparseMLP
from gptrs.nn.layers import LayerNorm, Linear, RMSNorm
from gptrs.nn.module import ParameterOf


@dataclass(frozen=True)
class BlockBuilder:
    """Makes layers whose parameters are called as their attributes."""

    family: Family
    config: DecoderConfig
    parameter: ParameterOf

    def norm(self, name: str) -> Norm:
        """A norm over the width."""
        if self.family.norm == "layer":
            shape = (self.config.hidden_size,)
            weight, bias = (self.parameter(f"{name}.{each}", shape) for each in ("weight", "bias"))
            return LayerNorm(weight, bias, self.config.rms_norm_eps)
        return self._rms_norm(name, self.config.hidden_size)

    def block(self, layer: int) -> Block:
        """Block number ``layer``, counted from 0."""
        at, norms, config = f"layers.{layer}", self.family.norms, self.config
        around = norms == "around"
        return Block(
            self._attention(f"{at}.self_attn", layer),
            self._sparse(f"{at}.mlp") if layer in config.sparse_layers else self._mlp(f"{at}.mlp"),
            self.norm(f"{at}.input_layernorm") if norms != "after" else None,
            self.norm(f"{at}.post_attention_layernorm"),
            self.norm(f"{at}.pre_feedforward_layernorm") if around else None,
            self.norm(f"{at}.post_feedforward_layernorm") if norms != "before" else None,
            norms,
            config.residual_multiplier,
            config.use_parallel_residual,
        )

    def _rms_norm(self, name: str, width: int) -> RMSNorm:
        weight = self.parameter(f"{name}.weight", (width,))
        plus_one = self.family.norm == "rms_plus_one"
        return RMSNorm(weight, self.config.rms_norm_eps, plus_one=plus_one)

    def _linear(self, name: str, wide: int, to: int, bias: bool) -> Linear:
        weight = self.parameter(f"{name}.weight", (to, wide))
        return Linear(weight, self.parameter(f"{name}.bias", (to,)) if bias else None)

    def _attention(self, at: str, layer: int) -> Attention:
        config, family = self.config, self.family
        width, size = config.hidden_size, config.head_size
        q, k = config.num_attention_heads * size, config.key_heads * size
        bias = config.attention_bias if family.qkv_bias is None else family.qkv_bias
        separate, normed = family.qkv == "separate", family.qk_norm != "none"
        q_norm, k_norm = (size, size) if family.qk_norm == "head" else (q, k)
        return Attention(
            self._linear(f"{at}.q_proj", width, q, bias) if separate else None,
            self._linear(f"{at}.k_proj", width, k, bias) if separate else None,
            self._linear(f"{at}.v_proj", width, k, bias) if separate else None,
            None if separate else self._linear(f"{at}.qkv_proj", width, q + 2 * k, bias),
            self._linear(f"{at}.o_proj", q, width, config.attention_bias),
            self._rms_norm(f"{at}.q_norm", q_norm) if normed else None,
            self._rms_norm(f"{at}.k_norm", k_norm) if normed else None,
            config.num_attention_heads,
            config.key_heads,
            size,
            family.qkv,
            family.qk_norm,
            config.attention_scale,
            config.window(layer),
            config.attn_logit_softcapping,
            layer,
            sum(bool(config.window(n)) == bool(config.window(layer)) for n in range(layer)),
        )

    def _mlp(self, at: str) -> MLP:
        config, kind = self.config, self.family.mlp
        width, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        stacked = kind == "stacked"
        return MLP(
            self._linear(f"{at}.gate_proj", width, inner, bias) if kind == "gated" else None,
            None if stacked else self._linear(f"{at}.up_proj", width, inner, bias),
            self._linear(f"{at}.gate_up_proj", width, 2 * inner, bias) if stacked else None,
            self._linear(f"{at}.down_proj", inner, width, bias),
            config.hidden_act,
        )

    def _sparse(self, at: str) -> SparseMLP:
        config = self.config
        count, width = config.num_local_experts, config.hidden_size
        inner = config.moe_intermediate_size or config.intermediate_size
        experts = Experts(
            self.parameter(f"{at}.experts.gate_up_proj", (count, 2 * inner, width)),
            self.parameter(f"{at}.experts.down_proj", (count, width, inner)),
            config.hidden_act,
        )
        gate = self._linear(f"{at}.gate", width, count, bias=False)
        return SparseMLP(gate, experts, config.num_experts_per_tok, config.norm_topk_prob)
