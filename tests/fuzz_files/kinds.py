"""Small files of every format, and how each is opened and read to its end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, pre_tokenizers

import gptrs
from gptrs.formats.archive import read_archive, write_archive
from gptrs.formats.chat_files import read_chat_files
from gptrs.formats.checkpoint import write_checkpoint
from gptrs.formats.safetensors_file import SafetensorsFile
from gptrs.formats.safetensors_writer import write_safetensors
from gptrs.ir.parameter import Parameter
from gptrs.models.config_fields import config_from_json
from gptrs.models.resnet import ResNet, ResNetConfig
from gptrs.text.tokenizer import Tokenizer
from tests.support.models import config, in_files, tensors, write

_SMALL = {"n_embd": 4, "n_head": 2, "n_layer": 1, "n_inner": 4, "n_positions": 4, "vocab_size": 7}
_IMAGES = {
    "model_type": "resnet",
    "embedding_size": 2,
    "hidden_sizes": [2, 3],
    "depths": [1, 1],
    "layer_type": "basic",
    "num_labels": 2,
    "id2label": {"0": "cat", "1": "dog"},
}
_RECIPE = {
    "image_processor_type": "ConvNextImageProcessor",
    "size": {"shortest_edge": 24},
    "crop_pct": 0.875,
    "resample": 3,
    "do_resize": True,
    "do_normalize": True,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.2, 0.2],
    "rescale_factor": 1 / 255,
}
_RUNTIME = {"functional_overrides": {"softmax": "force=portable"}}
_TEXT = "a the\né"


@dataclass(frozen=True)
class Kind:
    """``make`` fills a folder, ``read`` opens what is there and returns the bytes of the elements
    that it was given; ``changed`` matches the names of the files that are changed."""

    make: Callable[[Path], object]
    read: Callable[[Path], int]
    changed: str = ".*"

    def changeable(self, folder: Path) -> list[Path]:
        """The files that are changed, in their order."""
        return [file for file in sorted(folder.iterdir()) if re.fullmatch(self.changed, file.name)]


def _small_arrays() -> dict[str, NDArray[Any]]:
    """Of many shapes and dtypes that all kinds of files can hold."""
    return {
        "a": np.array([[1.0, -2.5]], np.float32),
        "b": np.array(3, np.int32),
        "c.é": np.arange(6, dtype=np.float16).reshape(3, 1, 2),
        "none": np.zeros((0, 4), np.float32),
    }


def _gpt2(folder: Path, shards: int = 1) -> None:
    settings = config(**_SMALL, bos_token_id=6, eos_token_id=[6], runtime=_RUNTIME)
    write(folder, settings, in_files(tensors(settings)), shards)
    (folder / "tokenizer.json").unlink()
    (folder / "generation_config.json").write_text('{"eos_token_id": 6, "top_k": 3}')


def _checkpoint(folder: Path) -> None:
    settings = config(**_SMALL)
    arrays = in_files(tensors(settings))
    write_checkpoint(folder / "x.gchk", "gpt", settings, arrays, runtime=_RUNTIME)


def _resnet(folder: Path) -> None:
    arrays: dict[str, NDArray[Any]] = {}

    def parameter(name: str, shape: tuple[int, ...]) -> Parameter:
        arrays[name] = np.ones(shape, np.float32)
        return Parameter(arrays[name], name)

    ResNet.build(config_from_json(ResNetConfig, {}, _IMAGES, folder), parameter)
    write_safetensors(folder / "model.safetensors", arrays)
    (folder / "config.json").write_text(json.dumps(_IMAGES))
    (folder / "preprocessor_config.json").write_text(json.dumps(_RECIPE))


def _tokenizer(folder: Path) -> None:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())[:90]
    vocabulary = {letter: number for number, letter in enumerate([*letters, "th", "the"])}
    made: Any = tokenizers.Tokenizer(models.BPE(vocabulary, [("t", "h"), ("th", "e")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|end|>"])
    made.save(str(folder / "tokenizer.json"))


def _chat(folder: Path) -> None:
    tokens = {"bos_token": "<s>", "eos_token": {"__type": "AddedToken", "content": "</s>"}}
    named = [{"name": "default", "template": "{{ bos_token }}"}, {"name": "x", "template": ""}]
    entries = {**tokens, "chat_template": named, "model_max_length": 1e30}
    (folder / "tokenizer_config.json").write_text(json.dumps(entries))


def _read_chat(folder: Path) -> int:
    assert read_chat_files(folder).template("chatml").source
    return 0


def _read_model(folder: Path) -> int:
    (place,) = list(folder.glob("*.gchk")) or [folder]
    model = gptrs.load(place)
    if model.image_classifier is not None:
        assert model.preprocessor is not None
    return sum(parameter.numpy().nbytes for parameter in model.module.parameters().values())


def _read_archive(folder: Path) -> int:
    return sum(array.nbytes for array in read_archive(folder / "x.gten").values())


def _read_safetensors(folder: Path) -> int:
    found = SafetensorsFile.open(folder / "x.safetensors").tensors
    return sum(tensor.read().nbytes for tensor in found.values())


def _read_tokenizer(folder: Path) -> int:
    tokenizer = Tokenizer.from_directory(folder)
    tokenizer.decode(tokenizer.encode(_TEXT))
    for token in range(min(tokenizer.vocab_size, 3)):
        tokenizer.spell(token)
    return 0


KINDS: dict[str, Kind] = {
    "archive": Kind(lambda at: write_archive(at / "x.gten", _small_arrays()), _read_archive),
    "chat": Kind(_chat, _read_chat),
    "checkpoint": Kind(_checkpoint, _read_model),
    "config": Kind(_gpt2, _read_model, r"(generation_)?config\.json"),
    "index": Kind(lambda at: _gpt2(at, shards=2), _read_model, r".*\.index\.json"),
    "preprocessor": Kind(_resnet, _read_model, r".*config\.json"),
    "safetensors": Kind(
        lambda at: write_safetensors(at / "x.safetensors", _small_arrays()), _read_safetensors
    ),
    "shards": Kind(lambda at: _gpt2(at, shards=2), _read_model),
    "tokenizer": Kind(_tokenizer, _read_tokenizer),
    "weights": Kind(_resnet, _read_model, r".*\.safetensors"),
}
"""By the names that findings have."""
