"""Image classifiers: inputs, outputs, and the errors for invalid directories and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from PIL import Image

import gptrs
from gptrs import events
from gptrs.errors import ArgumentError, LoadError, Location, PtirError
from gptrs.loading.image_classifier import ImageClassifier, Label
from gptrs.loading.language_model import LanguageModel
from gptrs.loading.threads import limit_threads
from gptrs.loading.weights import WeightRead, WeightsOpened
from gptrs.models.resnet import ResNet
from tests.support.image_models import (
    images,
    resnet,
    state,
    with_random_statistics,
    write,
)
from tests.support.lazy_torch import torch, torchvision
from tests.support.models import Arrays, tiny_gpt2

NAMES = {"0": "tench", "1": "goldfish", "2": "a great white shark"}


@pytest.fixture(scope="module")
def arrays() -> Arrays:
    """A model of one stage, of 7 classes."""
    return state(with_random_statistics(torchvision.ResNet((1,), (8,), 8, False)))


@pytest.fixture(scope="module")
def model(arrays: Arrays, tmp_path_factory: pytest.TempPathFactory) -> ImageClassifier:
    folder = tmp_path_factory.mktemp("model")
    size = {"height": 32, "width": 32}
    recipe = {"image_processor_type": "ViTImageProcessor", "size": size}
    (folder / "preprocessor_config.json").write_text(json.dumps(recipe))
    names = {str(index): f"class {index}" for index in range(7)}
    write(folder / "model.safetensors", arrays, model_type="resnet", id2label=names)
    return gptrs.load(folder)


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 60, 3), np.uint8))


class TestLoading:
    def test_weights_are_read_when_they_are_needed(self, tmp_path: Path, arrays: Arrays) -> None:
        path = write(tmp_path / "r.safetensors", arrays)
        heard: list[object] = []
        with events.listen(heard.append):
            model = gptrs.load(path)
            (opened,) = heard
            assert isinstance(opened, WeightsOpened)
            model.forward(images(1, 32, 32))
            read = {event.name for event in heard if isinstance(event, WeightRead)}
            heard.clear()
            model.forward(images(2, 32, 32))
            assert not any(isinstance(event, WeightRead) for event in heard)
        assert read == set(model.module.parameters())
        assert opened.count == len(read) == len([n for n in arrays if "num_batches" not in n])

    def test_each_handle_says_what_it_can_do(self, tmp_path: Path, model: ImageClassifier) -> None:
        assert model.image_classifier is model
        assert model.causal_lm is None
        language = gptrs.load(tiny_gpt2(tmp_path))
        assert isinstance(language, LanguageModel)
        assert language.causal_lm is language
        assert language.image_classifier is None

    def test_a_handle_describes_itself(self, tmp_path: Path, arrays: Arrays) -> None:
        model = gptrs.load(str(write(tmp_path / "small.safetensors", arrays)))
        assert (model.kind, model.directory.name) == ("resnet", "small.safetensors")
        assert repr(model).startswith("<resnet small.safetensors: ")

    def test_labels(self, tmp_path: Path, arrays: Arrays, model: ImageClassifier) -> None:
        assert model.labels == tuple(f"class {index}" for index in range(7))
        alone = gptrs.load(write(tmp_path / "r.safetensors", arrays))
        assert alone.labels == tuple(f"LABEL_{index}" for index in range(7))

    @pytest.mark.slow
    def test_labels_of_transformers(self, tmp_path: Path) -> None:
        resnet(tmp_path, hidden_sizes=[8], depths=[1], num_labels=3, id2label=NAMES)
        assert gptrs.load(tmp_path).labels == tuple(NAMES.values())

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"0": "a", "2": "b"}, "'1' is missing or too many, expected indices from 0 to 1"),
            ({"0": "a", "00": "b"}, "'00' is missing"),
            ({"0": 1}, "expected an object of indices and names"),
            ({}, "expected an object"),
            (["a"], "expected an object"),
            (dict.fromkeys(map(str, range(6)), "x"), r"shape \[7,8\], expected \[6,8\] by config"),
        ],
        ids=lambda value: str(value)[:20],
    )
    def test_bad_labels(self, tmp_path: Path, arrays: Arrays, given: object, said: str) -> None:
        write(tmp_path / "model.safetensors", arrays, model_type="resnet", id2label=given)
        with pytest.raises(LoadError, match=said) as caught:
            gptrs.load(tmp_path)
        assert str(tmp_path) in str(caught.value)

    def test_a_file_of_another_model(self, tmp_path: Path) -> None:
        path = write(tmp_path / "vgg.safetensors", {"features.0.weight": np.zeros(3, np.float32)})
        with pytest.raises(LoadError, match="named as in torchvision's") as caught:
            gptrs.load(path)
        assert "config.json" in caught.value.fix

    def test_a_damaged_file(self, tmp_path: Path, arrays: Arrays) -> None:
        path = write(tmp_path / "r.safetensors", arrays)
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(LoadError, match=r"r\.safetensors is no complete safetensors file"):
            gptrs.load(path)
        with pytest.raises(LoadError, match="there is no model directory or file"):
            gptrs.load(tmp_path / "other.safetensors")

    def test_several_files_without_an_index(self, tmp_path: Path, arrays: Arrays) -> None:
        write(tmp_path / "a.safetensors", arrays, model_type="resnet")
        write(tmp_path / "b.safetensors", arrays)
        with pytest.raises(LoadError, match=r"found 2 others: a\.safetensors, b\.safetensors"):
            gptrs.load(tmp_path)

    def test_a_checkpoint_has_its_overrides(self, tmp_path: Path, arrays: Arrays) -> None:
        runtime = {"functional_overrides": {"relu": "force=portable"}}
        write(tmp_path / "model.safetensors", arrays, model_type="resnet", runtime=runtime)
        own, plain = gptrs.load(tmp_path), gptrs.load(tmp_path / "model.safetensors")
        given = images(1, 32, 33)
        function: Any = ResNet.__call__
        expected = plain.forward(given).numpy()
        found = own.forward(given).numpy()
        assert "relu: force=portable" in function.retraces()[-1].reason
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
        count = len(function.retraces())
        plain.forward(given)
        assert len(function.retraces()) == count, "nothing is left behind"


class TestForward:
    def test_arrays_of_every_kind(self, model: ImageClassifier) -> None:
        given = images(2, 32, 32).astype(ml_dtypes.bfloat16).astype(np.float32)
        expected = model.forward(given).numpy()
        assert expected.shape == (2, 7)
        for dtype in (np.float64, np.float16, ml_dtypes.bfloat16):
            exact = given.astype(np.float16).astype(np.float32) if dtype == np.float16 else given
            found = model.forward(given.astype(dtype)).numpy()
            np.testing.assert_array_equal(found, model.forward(exact).numpy())
        for other in (gptrs.Tensor(given), torch.as_tensor(given), given[::1, ::-1, ::-1]):
            assert model.forward(other).shape == (2, 7)
        np.testing.assert_array_equal(model.forward(torch.as_tensor(given)).numpy(), expected)

    def test_one_image(self, model: ImageClassifier) -> None:
        given = images(1, 32, 32)
        expected = model.forward(given).numpy()[0]
        np.testing.assert_array_equal(model.forward(given[0]).numpy(), expected)
        first = given[0].transpose(2, 0, 1)
        np.testing.assert_array_equal(model.forward(first).numpy(), expected)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ("photo.jpg", "images are a str, expected an array"),
            (None, "images are a NoneType"),
            ([[1.0]], "images are a list"),
            (np.zeros((1, 32, 32, 3), np.uint8), "dtype uint8, expected floats"),
            (np.zeros((1, 32, 32, 3), np.int64), "dtype int64, expected floats"),
            (np.zeros((32, 3), np.float32), "expected floats .N, H, W, 3. or .N, 3, H, W."),
            (np.zeros((0, 32, 32, 3), np.float32), "not empty"),
            (np.zeros((1, 32, 0, 3), np.float32), "not empty"),
            (np.zeros((1, 32, 32, 1), np.float32), "expected .H, W, 3. or .3, H, W."),
            (np.zeros((32, 32, 4), np.float32), "expected .H, W, 3. or .3, H, W."),
            (np.zeros((3, 32, 3), np.float32), "cannot be told"),
        ],
        ids=lambda value: str(getattr(value, "shape", value))[:20],
    )
    def test_what_are_no_images(self, model: ImageClassifier, given: object, said: str) -> None:
        with pytest.raises(PtirError, match=said):
            model.forward(given)

    @pytest.mark.slow
    def test_an_error_on_another_thread_names_the_users_line(
        self, model: ImageClassifier, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given = images(8, 32, 32)
        model.forward(given[:1])
        monkeypatch.setenv("GPTRS_BACKEND", "nothing")
        found: set[Location | None] = set()
        for _ in range(20):  # any of the threads may be the first to fail
            with limit_threads(4), pytest.raises(ArgumentError, match="no backend") as raised:
                model.forward(given)
            found.add(raised.value.where)
        ((file, _, function),) = [where for where in found if where]
        assert file == __file__
        assert function.endswith("test_an_error_on_another_thread_names_the_users_line")

    def test_floats_beyond_f32_are_infinite(self, model: ImageClassifier) -> None:
        assert np.isnan(model.forward(np.full((1, 32, 32, 3), 1e300)).numpy()).any()


class TestClassify:
    def test_a_picture_however_it_comes(
        self, model: ImageClassifier, tmp_path: Path, photo: Image.Image
    ) -> None:
        photo.save(tmp_path / "photo.png")
        expected = model.classify(photo)
        assert len(expected) == 5
        for same in (tmp_path / "photo.png", str(tmp_path / "photo.png"), np.asarray(photo)):
            assert model.classify(same) == expected

    def test_labels_and_probabilities(self, model: ImageClassifier, photo: Image.Image) -> None:
        found = model.classify(photo, top=100)
        assert sorted(label.index for label in found) == list(range(7))
        assert all(label.name == f"class {label.index}" for label in found)
        likely = [label.probability for label in found]
        assert likely == sorted(likely, reverse=True)
        assert sum(likely) == pytest.approx(1)
        logits = model.forward(model.preprocessor([photo])).numpy()[0]
        expected = torch.softmax(torch.as_tensor(logits, dtype=torch.float64), 0)
        np.testing.assert_allclose(
            [label.probability for label in sorted(found)], expected.numpy(), rtol=1e-12
        )
        assert model.classify(photo, top=1) == found[:1]
        assert type(found[0]) is Label

    def test_several(self, model: ImageClassifier, photo: Image.Image) -> None:
        other = np.asarray(photo)[::-1]
        found = model.classify([photo, other])
        assert [[label.index for label in each] for each in found] == [
            [label.index for label in model.classify(each)] for each in (photo, other)
        ]
        assert model.classify([]) == []
        assert model.classify(np.stack([np.asarray(photo), other])) == found

    def test_top_may_be_of_numpy(self, model: ImageClassifier, photo: Image.Image) -> None:
        top: Any = np.int64(2)
        assert model.classify(photo, top=top) == model.classify(photo, top=2)

    def test_weights_that_are_no_numbers(
        self, tmp_path: Path, arrays: Arrays, photo: Image.Image
    ) -> None:
        wrong = arrays | {"fc.bias": np.full(7, np.nan, np.float32)}
        model = gptrs.load(write(tmp_path / "r.safetensors", wrong))
        with pytest.raises(
            PtirError, match="the largest logit is nan, expected a finite"
        ) as raised:
            model.classify(photo)
        assert "weights" in raised.value.fix

    @pytest.mark.parametrize("top", [0, -1, 1.5, True, None])
    def test_a_bad_top(self, model: ImageClassifier, photo: Image.Image, top: Any) -> None:
        with pytest.raises(ArgumentError, match=r"top is .* expected an integer from 1 up"):
            model.classify(photo, top=top)

    def test_no_image(self, model: ImageClassifier, tmp_path: Path) -> None:
        (tmp_path / "photo.png").write_text("no image")
        with pytest.raises(LoadError, match=r"photo\.png"):
            model.classify(tmp_path / "photo.png")

    def test_without_a_recipe_imagenets_is_used(
        self, tmp_path: Path, arrays: Arrays, photo: Image.Image
    ) -> None:
        model = gptrs.load(write(tmp_path / "r.safetensors", arrays))
        assert model.preprocessor([photo]).shape == (1, 224, 224, 3)
