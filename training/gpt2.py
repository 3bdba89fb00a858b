"""GPT-2 in plain torch, its tensors under the names that Hugging Face gives them."""

# torch leaves some of its own signatures without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import math
from dataclasses import asdict, dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as nnf

Past = tuple[Tensor, Tensor]
Cache = list[Past]


@dataclass(frozen=True)
class Config:
    """The sizes of a model."""

    vocab_size: int
    n_positions: int = 320
    n_embd: int = 128
    n_layer: int = 4
    n_head: int = 4

    def hugging_face(self, end: int) -> dict[str, object]:
        """Give the contents of config.json; `end` is the id of the end mark."""
        return {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            **asdict(self),
            "n_ctx": self.n_positions,
            "n_inner": None,
            "activation_function": "gelu_new",
            "attn_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "resid_pdrop": 0.0,
            "layer_norm_epsilon": 1e-5,
            "initializer_range": 0.02,
            "scale_attn_weights": True,
            "scale_attn_by_inverse_layer_idx": False,
            "reorder_and_upcast_attn": False,
            "tie_word_embeddings": True,
            "use_cache": True,
            "bos_token_id": end,
            "eos_token_id": end,
            "dtype": "float32",
            "torch_dtype": "float32",
        }


class Conv1D(nn.Module):
    """A linear layer whose weight is stored input by output."""

    def __init__(self, size_in: int, size_out: int, spread: float = 0.02) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size_in, size_out) * spread)
        self.bias = nn.Parameter(torch.zeros(size_out))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x.flatten(0, -2), self.weight).unflatten(0, x.shape[:-1])


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.n_head
        self.c_attn = Conv1D(config.n_embd, 3 * config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd)
        # Output undoes value, so that attention copies what it looks at from the first step on;
        # found by training alone, the copying of names takes several times as long.
        turn = torch.linalg.qr(torch.randn(config.n_embd, config.n_embd))[0]
        with torch.no_grad():
            self.c_attn.weight[:, 2 * config.n_embd :] = turn * math.sqrt(0.5)
            self.c_proj.weight.copy_(turn.T * math.sqrt(0.5))

    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.c_attn(x).chunk(3, dim=-1)
        )
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        mixed = nnf.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.c_proj(mixed.transpose(1, 2).flatten(2)), k, v


class MLP(nn.Module):
    """The two layers that look at each position alone."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.c_fc = Conv1D(config.n_embd, 4 * config.n_embd)
        spread = 0.02 / math.sqrt(2 * config.n_layer)
        self.c_proj = Conv1D(4 * config.n_embd, config.n_embd, spread)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(nnf.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    """One layer: attention and MLP, each with its norm before and its sum after."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = MLP(config)

    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Tensor, Tensor]:
        mixed, k, v = self.attn(self.ln_1(x), past)
        x = x + mixed
        return x + self.mlp(self.ln_2(x)), k, v


class Transformer(nn.Module):
    """The embeddings, the layers and the last norm."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)
        # Names play the same part in every story: what tells them apart is this start alone.
        nn.init.normal_(self.wte.weight, std=0.2)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        seen = cache[0][0].shape[2] if cache else 0
        x = self.wte(ids) + self.wpe(torch.arange(seen, seen + ids.shape[1]))
        for i, block in enumerate(self.h):
            x, k, v = block(x, cache[i] if cache and seen else None)
            if cache is not None:
                cache[i : i + 1] = [(k, v)]
        return self.ln_f(x)


class GPT2(nn.Module):
    """The language model; its output layer is the token embedding itself."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.transformer = Transformer(config)

    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        """Give the logits; a cache is filled in, and then taken as what came before `ids`."""
        return self.transformer(ids, cache) @ self.transformer.wte.weight.T

    @torch.no_grad()
    def generate(
        self, prompts: list[list[int]], end: int, temperature: float, rng: torch.Generator
    ) -> list[list[int]]:
        """Continue all prompts side by side up to the end mark; zero temperature is greedy."""
        told = [list(prompt) for prompt in prompts]
        cache: Cache = []
        for position in range(self.config.n_positions - 1):
            # All rows stand at the same position; those still inside their prompt draw nothing.
            ids = torch.tensor([[row[position] if position < len(row) else end] for row in told])
            logits = self.forward(ids, cache)[:, -1]
            if temperature > 0:
                chances = torch.softmax(logits / temperature, dim=-1)
                drawn = torch.multinomial(chances, 1, generator=rng)[:, 0]
            else:
                drawn = logits.argmax(dim=-1)
            for row, token in zip(told, cast("list[int]", drawn.tolist()), strict=True):
                if len(row) == position + 1 and row[-1] != end:
                    row.append(token)
        return [[token for token in row if token != end] for row in told]
