"""Opening checkpoints (GPTRSCHK) as models: the same logits, bit for bit, as their directories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import events
from gptrs.errors import LoadError
from gptrs.formats.checkpoint import CheckpointFile, write_checkpoint
from gptrs.loading.convert import convert
from gptrs.loading.language_model import LanguageModel
from gptrs.loading.weights import WeightRead, WeightsOpened
from tests.support.image_models import images, mobilenet_v2, resnet
from tests.support.models import END_ID, config, in_files, random_tokens, tensors, tiny_gpt2

pytestmark = pytest.mark.usefixtures("reference")

GIVEN: dict[str, Any] = {
    "gpt2": random_tokens(2, 9),
    "resnet": images(2, 40, 40),
    "mobilenet_v2": images(2, 48, 48),
}
MODELS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "gpt2": ("gpt2", tiny_gpt2),
    "gpt2-bf16": ("gpt2", lambda path: tiny_gpt2(path, "bf16")),
    "gpt2-untied": ("gpt2", lambda path: tiny_gpt2(path, tie_word_embeddings=False)),
    "resnet-basic": ("resnet", resnet),
    "resnet-bottleneck": ("resnet", lambda path: resnet(path, layer_type="bottleneck")),
    "mobilenet_v2": ("mobilenet_v2", mobilenet_v2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_the_directory(tmp_path: Path, name: str) -> None:
    kind, write = MODELS[name]
    write(tmp_path / "model")
    convert(tmp_path / "model", tmp_path / "x.gchk")
    expected, found = gptrs.load(tmp_path / "model"), gptrs.load(tmp_path / "x.gchk")
    assert (found.kind, found.config) == (kind, expected.config)
    logits = found.forward(GIVEN[kind]).numpy()
    assert np.array_equal(logits, expected.forward(GIVEN[kind]).numpy())
    assert np.ptp(logits) > 1


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    directory = tiny_gpt2(tmp_path / "model")
    (tmp_path / "alone").mkdir()
    convert(directory, tmp_path / "alone" / "x.gchk")
    return tmp_path / "alone" / "x.gchk"


def test_tensors_are_read_when_they_are_needed(checkpoint: Path) -> None:
    heard: list[object] = []
    with events.listen(heard.append):
        model = gptrs.load(checkpoint)
        (opened,) = heard
        assert isinstance(opened, WeightsOpened)
        assert opened.count == len(model.module.parameters())
        model.module.wpe.weight.numpy()
    assert heard[1:] == [WeightRead("wpe.weight", 48 * 32 * 4)]


@pytest.mark.slow
def test_text_is_that_of_the_directory(tmp_path: Path, checkpoint: Path) -> None:
    model = gptrs.load(checkpoint)
    assert isinstance(model, LanguageModel)
    expected = gptrs.load(tmp_path / "model").generate("on the", max_tokens=9)
    assert model.generate("on the", max_tokens=9) == expected
    (checkpoint.parent / "tokenizer.json").unlink()
    ids = gptrs.load(checkpoint).stream_tokens([1, 2], max_tokens=3)  # needs no tokenizer
    assert len(list(ids)) == 3


def test_what_is_beside_a_checkpoint_counts(checkpoint: Path) -> None:
    first = next(gptrs.load(checkpoint).stream_tokens([1, 2]))
    other = {"eos_token_id": [END_ID, first]}
    (checkpoint.parent / "generation_config.json").write_text(json.dumps(other))
    assert list(gptrs.load(checkpoint).stream_tokens([1, 2])) == []


def test_it_is_called_by_its_own_name(checkpoint: Path) -> None:
    assert repr(gptrs.load(checkpoint)).startswith("<gpt2 x.gchk: ")
    assert repr(gptrs.load(checkpoint.parents[1] / "model")).startswith("<gpt2 model: ")


@pytest.mark.parametrize("name", ["bos_token_id", "eos_token_id"])
def test_errors_name_the_checkpoint(tmp_path: Path, name: str) -> None:
    settings = config(**{name: "end"})
    write_checkpoint(tmp_path / "x.gchk", "gpt", settings, in_files(tensors(settings)))
    with pytest.raises(LoadError, match=f"x.gchk: {name} is 'end', expected an int") as raised:
        gptrs.load(tmp_path / "x.gchk")
    assert raised.value.fix


def test_a_tokenizer_of_another_model(checkpoint: Path) -> None:
    settings = config(vocab_size=3)
    write_checkpoint(checkpoint, "gpt", settings, in_files(tensors(settings)))
    with pytest.raises(LoadError, match=r"tokens, expected at most 3, the vocab_size of x\.gchk"):
        _ = gptrs.load(checkpoint).tokenizer


def test_the_ending_does_not_matter(checkpoint: Path) -> None:
    renamed = checkpoint.rename(checkpoint.with_suffix(".bin"))
    assert gptrs.load(renamed).forward([1, 2]).shape[0] == 2


@pytest.mark.slow
def test_labels_and_the_recipe_for_images_come_along(tmp_path: Path) -> None:
    names = {0: "cat", 1: "dog", 2: "owl"}
    resnet(tmp_path / "model", num_labels=3, id2label=names)
    recipe = {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}}
    (tmp_path / "model" / "preprocessor_config.json").write_text(json.dumps(recipe))
    convert(tmp_path / "model", tmp_path / "x.gchk")
    model, other = gptrs.load(tmp_path / "x.gchk"), gptrs.load(tmp_path / "model")
    assert model.labels == ("cat", "dog", "owl")
    image = np.random.default_rng(0).integers(0, 256, (50, 60, 3), np.uint8)
    assert model.preprocessor([image]).shape == (1, 32, 32, 3)
    assert model.classify(image) == other.classify(image)


def test_a_checkpoint_has_its_overrides(tmp_path: Path) -> None:
    runtime = {"functional_overrides": {"attention": "force=portable"}}
    convert(tiny_gpt2(tmp_path / "model", runtime=runtime), tmp_path / "x.gchk")
    file = CheckpointFile.open(tmp_path / "x.gchk")
    assert (file.runtime, "runtime" in file.config) == (runtime, False)
    model = gptrs.load(tmp_path / "x.gchk")
    model.forward(random_tokens(2, 7))
    function: Any = type(model.module).__call__
    assert "'attention: force=portable'" in function.retraces()[-1].reason


Fields = dict[str, Any]


@pytest.mark.parametrize(
    ("kind", "fields", "runtime", "said"),
    [
        ("llama9", {}, {}, "kind is 'llama9', expected one of .*, gpt, gpt2, .*, resnet, resnet34"),
        ("gpt", {"n_embd": "wide"}, {}, "n_embd is 'wide', expected int"),
        ("gpt", {"n_head": 5}, {}, "n_embd 32 is not a multiple of n_head 5"),
        ("gpt", {"n_layer": 3}, {}, "has no tensor 'h.2.attn.c_attn.weight'"),
        ("gpt", {"n_layer": 1}, {}, "the model has no place for tensor 'transformer.h.1."),
        ("gpt", {"n_positions": 50}, {}, "shape .48,32., expected .50,32. by its configuration"),
        ("resnet", {}, {}, "has no tensor 'embedder.convolution.weight'"),
        ("gpt", {}, {"functional_overrides": 3}, "runtime.functional_overrides: found 3"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_checkpoints_that_are_no_model(
    tmp_path: Path, kind: str, fields: Fields, runtime: Fields, said: str
) -> None:
    arrays = in_files(tensors(config()))
    write_checkpoint(tmp_path / "x", kind, config(**fields), arrays, runtime=runtime)
    with pytest.raises(LoadError, match=said) as raised:
        gptrs.load(tmp_path / "x")
    assert str(tmp_path / "x") in raised.value.problem


def test_a_tensor_of_integers(tmp_path: Path) -> None:
    arrays = in_files(tensors(config()))
    arrays["transformer.ln_f.bias"] = np.zeros(32, np.int32)
    write_checkpoint(tmp_path / "x", "gpt", config(), arrays)
    with pytest.raises(LoadError, match=r"'transformer\.ln_f\.bias' has dtype si32, expected one"):
        gptrs.load(tmp_path / "x")


@pytest.mark.slow
def test_every_byte_of_the_configuration_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    settings = config(n_layer=1, n_embd=4, n_head=2)
    runtime = {"functional_overrides": {"softmax": "force=portable"}}
    write_checkpoint(path, "gpt", settings, in_files(tensors(settings)), runtime=runtime)
    data = path.read_bytes()
    end = 20 + int.from_bytes(data[12:16], "little")  # of index_len
    refused = 0
    for at in range(end):
        for mask in (0x01, 0x80, 0xFF):
            path.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
            try:
                gptrs.load(path)
            except LoadError:
                refused += 1
    assert 2 * end < refused < 3 * end


def test_an_archive_is_no_model(tmp_path: Path) -> None:
    convert(tiny_gpt2(tmp_path / "model"), tmp_path / "x.gten")
    with pytest.raises(LoadError, match=r"x.gten is no model directory, no checkpoint") as raised:
        gptrs.load(tmp_path / "x.gten")
    assert "gptrs convert" in raised.value.fix
