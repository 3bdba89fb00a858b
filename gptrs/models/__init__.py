"""Model architectures, and the registry by ``model_type``.

A built-in model is one file and one row in `MODELS`; other models are registered in the process, or
offered by installed packages (`registry`). A model declares its configuration as a dataclass, is
built from parameters by name, and its ``__call__`` is a jitted function. ``docs/models.md`` shows
how to write one.

| module | contents |
|---|---|
| `base` | `Model`: task, configuration type, names of tensors, ``build`` |
| `registry` | models by ``model_type``; entry points |
| `config_fields` | entries of ``config.json`` → a dataclass |
| `gpt2` | GPT-2 with a KV cache |
| `decoder` | every other language model: embedding, blocks, head, with a KV cache |
| `decoder_layers` | attention, MLP and block |
| `experts` | the sparse MLP of mixtures of experts |
| `decoder_builder` | the layers with their parameters |
| `decoder_config` | `DecoderConfig`, and `Family`: how a ``model_type`` differs from Llama |
| `families` | the table of families: Llama, Mistral, Qwen, Gemma, Phi ... |
| `resnet` | ResNet |
| `mobilenet_v2` | MobileNetV2 |
| `torchvision` | names of torchvision's tensors, and configurations inferred from shapes |
| `stories/` | the bundled checkpoint |

Order when a model is loaded (`gptrs.loading.load`): `find_model` → the configuration dataclass from
config.json → ``build(config, parameter)`` → the model is called.
"""

from __future__ import annotations

from pathlib import Path

from gptrs.models.base import Model
from gptrs.models.registry import MODELS, find_model, known_models, register

__all__ = ["BUNDLED", "MODELS", "Model", "find_model", "known_models", "register"]

BUNDLED: dict[str, Path] = {
    "stories": Path(__file__).parent / "stories",
}
"""The checkpoints that ship with the package, by name."""
