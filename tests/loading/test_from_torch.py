"""Models of torch that are in memory: the same logits as torch's, and as through files."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

import gptrs
from gptrs.errors import ArgumentError, LoadError
from gptrs.ir.types import bf16
from gptrs.loading.image_classifier import ImageClassifier
from gptrs.loading.language_model import LanguageModel
from gptrs.models import MODELS
from tests.support.image_models import (
    MOBILENET_V2,
    RESNET,
    TORCH_ERROR,
    images,
    logits,
    with_random_statistics,
)
from tests.support.lazy_torch import torch, torchvision, transformers
from tests.support.models import END_ID, byte_tokenizer, config, in_files, random_tokens, tensors

TOKENS = random_tokens(2, 9)
IMAGES = images(2, 40, 48)


def gpt2(kind: str = "GPT2LMHeadModel", **fields: Any) -> Any:
    """A model of transformers with weights so large that its logits differ."""
    settings = config(**fields)
    model: Any = getattr(transformers, kind)(transformers.GPT2Config(**settings))
    arrays = in_files(tensors(settings))
    if kind == "GPT2Model":
        arrays = tensors(settings)
    given = {name: torch.as_tensor(array) for name, array in arrays.items()}
    left = model.load_state_dict(given, strict=False)
    assert left.unexpected_keys == []
    assert set(left.missing_keys) <= {"lm_head.weight", "score.weight"}
    return model.eval()


def image_model(kind: str, **fields: Any) -> Any:
    given = {"ResNet": RESNET, "MobileNetV2": MOBILENET_V2}[kind] | fields
    settings = getattr(transformers, f"{kind}Config")(**given)
    return with_random_statistics(getattr(transformers, f"{kind}ForImageClassification")(settings))


def torchvision_resnet() -> torch.nn.Module:
    return with_random_statistics(torchvision.ResNet((1, 2), (8, 12), 8, False))


def next_tokens(model: Any) -> Any:
    with torch.no_grad():
        return model(torch.as_tensor(TOKENS)).logits.float().numpy()


IMAGE_MODELS: dict[str, Callable[[], Any]] = {
    "resnet-basic": lambda: image_model("ResNet"),
    "resnet-bottleneck": lambda: image_model("ResNet", layer_type="bottleneck"),
    "mobilenet_v2": lambda: image_model("MobileNetV2"),
    "torchvision-resnet": torchvision_resnet,
    "torchvision-bottleneck": lambda: with_random_statistics(
        torchvision.ResNet((1, 1), (16, 32), 8, True)
    ),
    "torchvision-mobilenet_v2": lambda: with_random_statistics(torchvision.MobileNetV2(0.5)),
}


class TestLanguageModels:
    @pytest.mark.slow
    @pytest.mark.parametrize("fields", [{}, {"tie_word_embeddings": False}, {"n_inner": 48}])
    def test_logits_are_torchs(self, fields: dict[str, Any]) -> None:
        module = gpt2(**fields)
        model = gptrs.from_torch(module)
        assert isinstance(model, LanguageModel)
        assert model.kind == "gpt2"
        expected = next_tokens(module)
        assert np.ptp(expected) > 5
        np.testing.assert_allclose(model.forward(TOKENS).numpy(), expected, rtol=0, atol=1e-4)

    @pytest.mark.slow
    def test_bits_are_those_of_the_directory(self, tmp_path: Path) -> None:
        module = gpt2()
        module.save_pretrained(tmp_path)
        found, expected = gptrs.from_torch(module), gptrs.load(tmp_path)
        assert found.config == expected.config
        assert found.forward(TOKENS).numpy().tobytes() == expected.forward(TOKENS).numpy().tobytes()

    @pytest.mark.slow
    def test_a_tied_head_is_one_parameter(self) -> None:
        module = gptrs.from_torch(gpt2()).module
        assert module.lm_head.weight is module.wte.weight
        untied = gptrs.from_torch(gpt2(tie_word_embeddings=False)).module
        assert untied.lm_head.weight is not untied.wte.weight

    def test_a_model_without_a_head(self) -> None:
        model = gptrs.from_torch(gpt2("GPT2Model"))
        expected = next_tokens(gpt2())  # the head is the embedding
        np.testing.assert_allclose(model.forward(TOKENS).numpy(), expected, rtol=0, atol=1e-4)

    @pytest.mark.slow
    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    def test_elements_keep_their_bits(self, dtype: str) -> None:
        module = gpt2().to(getattr(torch, dtype))
        parameters = gptrs.from_torch(module).parameters()
        assert len(parameters) == len(list(module.parameters()))
        bits = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}[dtype]
        for name, weight in module.transformer.named_parameters():
            found = parameters[name].numpy()
            assert found.dtype == bits
            assert found.tobytes() == weight.detach().view(torch.int16).numpy().tobytes()

    def test_what_happens_to_the_module_changes_nothing(self) -> None:
        module = gpt2()
        model = gptrs.from_torch(module)
        expected = gptrs.from_torch(module).forward(TOKENS).numpy()
        with torch.no_grad():
            for weight in module.parameters():
                weight.zero_()
        assert model.forward(TOKENS).numpy().tobytes() == expected.tobytes()

    def test_elements_are_copied_once(self) -> None:
        module = gpt2()
        size = sum(weight.numel() * 4 for weight in module.parameters())
        tracemalloc.start()
        model = gptrs.from_torch(module)
        held = [weight.numpy() for weight in model.parameters().values()]
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert size <= sum(array.nbytes for array in held) < taken < 2 * size
        weight = model.parameters()["wpe.weight"]
        weight.release()
        assert any(np.shares_memory(weight.numpy(), array) for array in held)

    def test_a_module_that_is_trained_infers(self) -> None:
        module = gpt2(attn_pdrop=0.5, resid_pdrop=0.5).train()
        expected = next_tokens(gpt2())
        found = gptrs.from_torch(module).forward(TOKENS).numpy()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
        assert module.training, "the module stays as it is"

    @pytest.mark.slow
    def test_a_module_that_is_compiled(self) -> None:
        module = gpt2()
        compiled: Any = cast("Any", torch).compile(module, backend="eager")
        found = gptrs.from_torch(compiled).forward(TOKENS).numpy()
        assert found.tobytes() == gptrs.from_torch(module).forward(TOKENS).numpy().tobytes()

    def test_text_needs_a_tokenizer(self, tmp_path: Path) -> None:
        module = gpt2()
        with pytest.raises(LoadError, match="<GPT2LMHeadModel> has no tokenizer") as raised:
            gptrs.from_torch(module).generate("on the")
        assert "directory=" in raised.value.fix
        byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
        model = gptrs.from_torch(module, directory=tmp_path)
        assert len(model.complete("on the", max_tokens=4, ignore_eos=True).tokens) == 4
        with pytest.raises(LoadError, match="is no directory"):
            gptrs.from_torch(module, directory=tmp_path / "tokenizer.json")

    def test_texts_end_as_transformers_says(self) -> None:
        module = gpt2()
        model = gptrs.from_torch(module)
        first = next(model.stream_tokens([1, 2]))
        module.generation_config.eos_token_id = [END_ID, first]
        model = gptrs.from_torch(module)
        assert list(model.stream_tokens([1, 2])) == []


class TestImageModels:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", IMAGE_MODELS)
    def test_logits_are_torchs(self, name: str) -> None:
        module = IMAGE_MODELS[name]()
        model = gptrs.from_torch(module)
        assert isinstance(model, ImageClassifier)
        expected = logits(module, IMAGES)
        assert np.ptp(expected, axis=0).max() > 10 * TORCH_ERROR
        found = model.forward(IMAGES).numpy()
        np.testing.assert_allclose(found, expected, rtol=0, atol=TORCH_ERROR)

    def test_normalisation_uses_running_statistics(self) -> None:
        module = torchvision_resnet()
        expected = gptrs.from_torch(module).forward(IMAGES).numpy()
        found = gptrs.from_torch(module.train()).forward(IMAGES).numpy()
        assert found.tobytes() == expected.tobytes()

    @pytest.mark.slow
    def test_labels(self) -> None:
        names = {0: "cat", 1: "dog", 2: "owl"}
        model = gptrs.from_torch(image_model("ResNet", num_labels=3, id2label=names))
        assert model.labels == ("cat", "dog", "owl")
        named = {"model_type": "resnet", "id2label": {str(n): f"class {n}" for n in range(7)}}
        model = gptrs.from_torch(torchvision_resnet(), config=named)
        assert model.labels[6] == "class 6"
        image = np.random.default_rng(0).integers(0, 256, (50, 60, 3), np.uint8)
        assert {label.name for label in model.classify(image, top=7)} == set(model.labels)


class TestStateDicts:
    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["dict", "path", "config"])
    def test_a_configuration_is_given(self, tmp_path: Path, form: str) -> None:
        module = gpt2()
        (tmp_path / "config.json").write_text(json.dumps(config()))
        given = {"dict": config(), "path": tmp_path / "config.json", "config": module.config}
        model = gptrs.from_torch(module.state_dict(), config=given[form])
        expected = gptrs.from_torch(module).forward(TOKENS).numpy()
        assert model.forward(TOKENS).numpy().tobytes() == expected.tobytes()
        assert repr(model).startswith("<gpt2 <state dict>: ")

    @pytest.mark.slow
    def test_arrays_and_tensors(self) -> None:
        arrays = in_files(tensors(config()))
        mixed: dict[str, object] = {
            name: gptrs.Tensor(array) if number % 2 else array
            for number, (name, array) in enumerate(arrays.items())
        }
        found = gptrs.from_torch(mixed, config=config()).forward(TOKENS).numpy()
        assert found.tobytes() == gptrs.from_torch(gpt2()).forward(TOKENS).numpy().tobytes()

    @pytest.mark.slow
    def test_views_of_any_order(self) -> None:
        state = dict(torchvision_resnet().state_dict())
        expected = gptrs.from_torch(state).forward(IMAGES).numpy()
        turned = {
            name: tensor.contiguous(memory_format=torch.channels_last)
            if tensor.ndim == 4
            else tensor
            for name, tensor in state.items()
        }
        assert not turned["conv1.weight"].is_contiguous()
        found = gptrs.from_torch(turned).forward(IMAGES).numpy()
        assert found.tobytes() == expected.tobytes()

    def test_torchvisions_names_say_the_configuration(self) -> None:
        module = torchvision_resnet()
        found = gptrs.from_torch(module.state_dict()).forward(IMAGES).numpy()
        assert found.tobytes() == gptrs.from_torch(module).forward(IMAGES).numpy().tobytes()

    def test_a_head_that_differs_from_the_embedding(self) -> None:
        arrays = in_files(tensors(config()))
        arrays["lm_head.weight"] = arrays["transformer.wte.weight"] + 1
        model = gptrs.from_torch(arrays, config=config())
        with pytest.raises(LoadError, match=r"'lm_head\.weight' differs from"):
            model.forward(TOKENS)


def quantized() -> dict[str, object]:
    weight = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    return {"conv1.weight": weight}


def sparse() -> dict[str, object]:
    return {"a": torch.eye(3).to_sparse()}


def wrapper(model: Any) -> torch.nn.Module:
    class Wrapper(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.config = model.config

    return Wrapper()


BAD: dict[str, tuple[Callable[[], object], object, str]] = {
    "path": (lambda: "model", None, "found a str, expected a torch.nn.Module or a state dict"),
    "class": (lambda: torch.nn.Linear, None, "found a type, expected a torch.nn.Module"),
    "meta": (
        lambda: gpt2().to("meta"),
        None,
        "<GPT2LMHeadModel>: 'transformer.wte.weight' is on the meta device",
    ),
    "quantized": (quantized, None, r"'conv1.weight' is quantized \(torch.qint8\), expected floats"),
    "sparse": (sparse, config(), r"'a' is sparse \(torch.sparse_coo\), expected a dense"),
    "no-tensor": (
        lambda: {"state_dict": {}, "epoch": 3},
        config(),
        "<state dict>: 'state_dict' is a dict, expected a tensor",
    ),
    "no-name": (lambda: {3: torch.ones(3)}, config(), "a tensor is called 3, expected a string"),
    "strings": (lambda: {"a": np.array(["x"])}, config(), "'a' is"),
    "objects": (lambda: {"a": np.array([None])}, config(), "'a' is"),
    "two-configs": (gpt2, config(), "has a configuration, and config= gives another"),
    "no-config": (
        lambda: torch.nn.Linear(3, 3),
        None,
        "<Linear> has no configuration, and its tensors are not named as in torchvision's",
    ),
    "config-text": (dict, 3, "config is a int, expected the entries of a config.json"),
}
UNFIT: dict[str, tuple[Callable[[], object], object, str]] = {
    "opt": (
        lambda: transformers.OPTForCausalLM(
            transformers.OPTConfig(
                vocab_size=8,
                hidden_size=8,
                ffn_dim=8,
                word_embed_proj_dim=8,
                num_hidden_layers=1,
                num_attention_heads=1,
            )
        ),
        None,
        "<OPTForCausalLM>: model_type is 'opt', expected one of .*gpt2.*resnet",
    ),
    "f64": (lambda: gpt2().double(), None, "has dtype f64, expected one of f32, f16, bf16"),
    "other-head": (
        lambda: gpt2("GPT2ForSequenceClassification", pad_token_id=0),
        None,
        "the model has no place for tensor 'score.weight'",
    ),
    "wrapped": (lambda: wrapper(gpt2()), None, "<Wrapper> has no tensor|no place for tensor"),
    "narrow": (
        lambda: in_files(tensors(config())),
        config(n_positions=50),
        r"'transformer.wpe.weight' has shape \[48,32\], expected \[50,32\] by its configuration",
    ),
    "no-kind": (lambda: in_files(tensors(config())), {"n_embd": 32}, "model_type is None"),
    "runtime": (dict, {"model_type": "gpt2", "runtime": 1}, "runtime is 1"),
    "empty": (dict, config(), "<state dict> has no tensor"),
    "no-file": (dict, "no.json", "no.json does not exist"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*quantiz.*")
@pytest.mark.parametrize("name", BAD)
def test_what_is_no_model(name: str) -> None:
    make, given, said = BAD[name]
    with pytest.raises(ArgumentError, match=said) as raised:
        gptrs.from_torch(make(), config=given)
    assert "\n" not in raised.value.problem


@pytest.mark.slow
@pytest.mark.parametrize("name", UNFIT)
def test_what_does_not_fit(name: str) -> None:
    make, given, said = UNFIT[name]
    with pytest.raises(LoadError, match=said) as raised:
        gptrs.from_torch(make(), config=given)
    assert raised.value.__cause__ is None


def test_a_narrow_cache() -> None:
    model = gptrs.from_torch(gpt2(), kv_cache_dtype="bf16")
    assert model.generator.init_cache(np.zeros(1, np.int32), 4).keys.dtype is bf16


def test_unknown_kinds_say_the_known_ones() -> None:
    with pytest.raises(ArgumentError) as raised:
        gptrs.from_torch(torch.nn.Linear(3, 3))
    assert ", ".join(sorted(MODELS)) in raised.value.fix


def test_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere:
        device = SimpleNamespace(type="cuda", __str__=lambda: "cuda:0")

    fake = SimpleNamespace(Tensor=Elsewhere, nn=torch.nn)
    monkeypatch.setitem(sys.modules, "torch", cast("Any", fake))
    state: Mapping[str, object] = {"a": Elsewhere()}
    with pytest.raises(ArgumentError, match=r"'a' is on .*cuda.*, expected the CPU") as raised:
        gptrs.from_torch(state, config=config())
    assert "cpu()" in raised.value.fix


def test_torch_is_not_needed_for_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    module = torch.nn.Linear(2, 2)
    monkeypatch.delitem(sys.modules, "torch")
    model = gptrs.from_torch(in_files(tensors(config())), config=config())
    assert isinstance(model, LanguageModel)
    assert model.forward([1, 2]).shape == (2, config()["vocab_size"])
    with pytest.raises(ArgumentError, match=r"found a Linear, expected a torch\.nn\.Module"):
        gptrs.from_torch(module)
