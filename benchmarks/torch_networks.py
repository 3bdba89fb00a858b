"""The modules of `benchmarks.torch_models`: families of transformers at base size, random weights,
and networks of plain torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import nn

Operands = dict[str, torch.Tensor]
Make = Callable[[int], tuple[nn.Module, Operands]]
"""A module, and operands of so many rows."""


def _ids(batch: int, length: int = 128, most: int = 1000) -> torch.Tensor:
    return torch.randint(10, most, (batch, length))


def _images(batch: int, size: int = 224) -> torch.Tensor:
    return torch.randn(batch, 3, size, size)


def _family(name: str, operands: Callable[[int], Operands], **config: Any) -> Make:
    """A model of transformers by the beginning of its class's name."""

    def make(batch: int) -> tuple[nn.Module, Operands]:
        library: Any = transformers
        configuration = getattr(library, f"{name.removesuffix('Encoder')}Config")(**config)
        configuration.use_cache = False
        module = getattr(library, f"{name}Model")(configuration)
        return module.eval(), operands(batch)

    return make


def _text(batch: int) -> Operands:
    return {"input_ids": _ids(batch)}


def _pixels(batch: int) -> Operands:
    return {"pixel_values": _images(batch)}


def _whisper(batch: int) -> tuple[nn.Module, Operands]:
    module = transformers.WhisperModel(transformers.WhisperConfig())
    return module.encoder.eval(), {"input_features": torch.randn(batch, 80, 3000)}


def _whisper_decoder(batch: int) -> tuple[nn.Module, Operands]:
    module = transformers.WhisperModel(transformers.WhisperConfig(use_cache=False)).decoder.eval()
    heard = torch.randn(batch, 1500, 384)
    return module, {"input_ids": _ids(batch, 32), "encoder_hidden_states": heard}


class Tagger(nn.Module):
    """Embeddings, two bidirectional LSTM layers, a class for each token."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, 128)
        self.rows = nn.LSTM(128, 256, num_layers=2, bidirectional=True, batch_first=True)
        self.classes = nn.Linear(512, 20)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.classes(self.rows(self.words(input_ids))[0])


class Mixer(nn.Module):
    """An MLP-Mixer of 8 layers over patches of 16 × 16."""

    def __init__(self, width: int = 512, patches: int = 196) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(16))
        self.across = nn.ModuleList(_mlp(patches, 256) for _ in range(8))
        self.within = nn.ModuleList(_mlp(width, 2048) for _ in range(8))
        self.classes = nn.Linear(width, 1000)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x = self.patches(pixel_values).flatten(2).transpose(1, 2)
        for n, (across, within) in enumerate(zip(self.across, self.within, strict=True)):
            x = x + across(self.norms[2 * n](x).transpose(1, 2)).transpose(1, 2)
            x = x + within(self.norms[2 * n + 1](x))
        return self.classes(x.mean(1))


def _mlp(width: int, inner: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))


class UNet(nn.Module):
    """Two levels down and up, with group norms and SiLU, as in diffusion models."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(_block(width * n, width * 2 * n, 2) for n in (1, 2))
        self.middle = _block(width * 4, width * 4, 1)
        self.up = nn.ModuleList(_block(width * 6 // n, width * 2 // n, 1) for n in (1, 2))
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x = self.first(pixel_values)
        kept: list[torch.Tensor] = []
        for block in self.down:
            kept.append(x)
            x = block(x)
        x = self.middle(x)
        for block in self.up:
            x = nn.functional.interpolate(x, scale_factor=2.0)
            x = block(torch.cat([x, kept.pop()], 1))
        return self.last(x)


def _block(before: int, after: int, stride: int) -> nn.Module:
    first = nn.Conv2d(before, after, 3, stride=stride, padding=1)
    second = nn.Conv2d(after, after, 3, padding=1)
    return nn.Sequential(
        first, nn.GroupNorm(8, after), nn.SiLU(), second, nn.GroupNorm(8, after), nn.SiLU()
    )


def _own(make: Callable[[], nn.Module], operands: Callable[[int], Operands]) -> Make:
    return lambda batch: (make().eval(), operands(batch))


def _t5(batch: int) -> tuple[nn.Module, Operands]:
    module = transformers.T5EncoderModel(
        transformers.T5Config(d_model=768, num_heads=12, d_ff=3072)
    )
    return module.eval(), _text(batch)


def _clip(batch: int) -> tuple[nn.Module, Operands]:
    module = transformers.CLIPVisionModel(transformers.CLIPVisionConfig())
    return module.eval(), _pixels(batch)


_SMALL = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 12}
NETWORKS: dict[str, Make] = {
    "bert": _family("Bert", _text),
    "roberta": _family("Roberta", _text),
    "distilbert": _family("DistilBert", _text),
    "deberta": _family("DebertaV2", _text, hidden_size=768, num_hidden_layers=12),
    "gpt2": _family("GPT2", _text),
    "llama": _family("Llama", _text, **_SMALL, num_attention_heads=9, num_key_value_heads=3),
    "qwen3": _family("Qwen3", _text, **_SMALL, num_attention_heads=9, num_key_value_heads=3),
    "mamba": _family("Mamba", _text, hidden_size=768, num_hidden_layers=4),
    "t5 encoder": _t5,
    "whisper encoder": _whisper,
    "whisper decoder": _whisper_decoder,
    "vit": _family("ViT", _pixels),
    "dinov2": _family("Dinov2", _pixels, image_size=224, patch_size=14),
    "clip vision": _clip,
    "swin": _family("Swin", _pixels),
    "convnext": _family("ConvNext", _pixels),
    "resnet50": _family("ResNet", _pixels),
    "lstm tagger": _own(Tagger, _text),
    "mlp-mixer": _own(Mixer, _pixels),
    "unet": _own(UNet, lambda batch: {"pixel_values": _images(batch, 128)}),
}
"""The modules by name."""
