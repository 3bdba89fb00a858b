"""Golden programs of tiny models, as traced and after the passes, in tests/models/golden.

A change of a program shows up in review. `python -m tests.models.test_golden` writes them anew.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs.ir.parameter import Parameter
from gptrs.ir.parsing import parse
from gptrs.models.decoder import Decoder
from gptrs.models.families import Gemma3, Llama, Mixtral
from gptrs.models.gpt2 import GPT2, GPT2Config
from gptrs.models.mobilenet_v2 import MobileNetV2, MobileNetV2Config
from gptrs.models.resnet import ResNet, ResNetConfig

FOLDER = Path(__file__).parent / "golden"


def _zeros(name: str, shape: tuple[int, ...]) -> Parameter:
    return Parameter(np.zeros(shape, np.float32), name)


def _gpt2() -> dict[str, str]:
    """One layer: a whole prompt, and the last logits of new tokens over a cache."""
    config = GPT2Config(vocab_size=11, n_positions=16, n_embd=8, n_layer=1, n_head=2)
    model = GPT2.build(config, _zeros)
    tokens = np.zeros((2, 3), np.int64)
    cache = model.init_cache(np.zeros(2, np.int32), 8)
    jitted = type(model).__call__
    return {
        "gpt2": str(jitted.program(model, tokens)),
        "gpt2_lowered": str(jitted.lowered(model, tokens)),
        "gpt2_cached": str(jitted.program(model, tokens, cache, logits="last")),
        "gpt2_cached_lowered": str(jitted.lowered(model, tokens, cache, logits="last")),
    }


def _resnet() -> dict[str, str]:
    """One stage of a basic block that needs no shortcut, and a stage of a bottleneck that does."""
    images = np.zeros((2, 16, 16, 3), np.float32)
    programs: dict[str, str] = {}
    for kind, sizes in (("basic", (4,)), ("bottleneck", (8, 12))):
        config = ResNetConfig(
            embedding_size=4,
            hidden_sizes=sizes,
            depths=(1,) * len(sizes),
            layer_type=kind,
            num_labels=5,
        )
        model = ResNet.build(config, _zeros)
        jitted = type(model).__call__
        programs[f"resnet_{kind}"] = str(jitted.program(model, images))
        programs[f"resnet_{kind}_lowered"] = str(jitted.lowered(model, images))
    return programs


def _mobilenet_v2() -> dict[str, str]:
    """The narrowest of all its blocks, with TensorFlow's padding, of images with channels first."""
    config = MobileNetV2Config(depth_multiplier=0.1, finegrained_output=False, num_labels=5)
    model = MobileNetV2.build(config, _zeros)
    images = np.zeros((2, 3, 33, 32), np.float32)
    jitted = type(model).__call__
    return {
        "mobilenet_v2": str(jitted.program(model, images)),
        "mobilenet_v2_lowered": str(jitted.lowered(model, images)),
    }


def _decoders() -> dict[str, str]:
    """One layer of some families, the last logits of new tokens over a cache."""
    sizes: dict[str, Any] = {
        "vocab_size": 11,
        "hidden_size": 8,
        "intermediate_size": 12,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
    }
    found: dict[str, str] = {}
    kinds: tuple[type[Decoder], ...] = (Llama, Gemma3, Mixtral)
    for kind in kinds:
        model = kind.build(kind.read_config(sizes, Path("config.json")), _zeros)
        arguments = np.zeros((2, 3), np.int64), model.init_cache(np.zeros(2, np.int32), 8)
        jitted, name = type(model).__call__, f"{kind.__name__.lower()}_cached"
        found[name] = str(jitted.program(model, *arguments, logits="last"))
        found[f"{name}_lowered"] = str(jitted.lowered(model, *arguments, logits="last"))
    return found


@cache
def programs() -> dict[str, str]:
    """The texts of all programs by name."""
    return _gpt2() | _decoders() | _resnet() | _mobilenet_v2()


NAMES = sorted(path.stem for path in FOLDER.glob("*.ptir"))


def test_every_program_has_a_file() -> None:
    assert sorted(programs()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_program_is_unchanged(name: str) -> None:
    golden = (FOLDER / f"{name}.ptir").read_text(encoding="utf-8")
    assert programs()[name] == golden, "if this is meant, run: python -m tests.models.test_golden"
    assert str(parse(golden)) == golden


if __name__ == "__main__":
    for name, text in programs().items():
        (FOLDER / f"{name}.ptir").write_text(text, encoding="utf-8")
