"""All image models: batches, layouts, and invalid inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs.errors import LoadError, ShapeError
from gptrs.models.mobilenet_v2 import MobileNetV2
from gptrs.models.resnet import ResNet
from tests.support.image_models import images, mobilenet_v2, resnet, write
from tests.support.models import load_arrays

KINDS: dict[str, tuple[Callable[[Path], Any], Any]] = {
    "mobilenet_v2": (mobilenet_v2, MobileNetV2),
    "resnet": (resnet, ResNet),
}
KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of a small model, by its kind."""

    @cache
    def made(kind: str) -> Path:
        folder = tmp_path_factory.mktemp(kind)
        KINDS[kind][0](folder)
        return folder

    return made


@pytest.mark.slow
@KIND
def test_a_row_does_not_depend_on_the_batch(kind: str, directory: Callable[[str], Path]) -> None:
    model, function = gptrs.load(directory(kind)), KINDS[kind][1].__call__
    three = images(3, 32, 40)
    function.clear_cache()
    together = model.forward(three).numpy()
    assert together.shape == (3, 7)
    for row, image in zip(together, three, strict=True):
        np.testing.assert_allclose(model.forward(image[None]).numpy(), [row], atol=1e-5, rtol=0)
        np.testing.assert_allclose(model.forward(image).numpy(), row, atol=1e-5, rtol=0)
    assert function.cache_info().misses == 1, "the batch size is symbolic"


@pytest.mark.slow
@KIND
def test_channels_may_be_first(kind: str, directory: Callable[[str], Path]) -> None:
    model = gptrs.load(directory(kind))
    given = images(2, 32, 40)
    first = np.ascontiguousarray(given.transpose(0, 3, 1, 2))
    expected = model.forward(given).numpy()
    np.testing.assert_array_equal(model.forward(first).numpy(), expected)
    np.testing.assert_array_equal(model.module(first).numpy(), expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((2, 32, 32, 4), r"\[32,32,4\] each, expected \[H, W, 3\] or \[3, H, W\]"),
        ((1, 3, 32, 3), "cannot be told"),
        ((32, 32, 3), "rank 3, expected 4"),
        ((1, 1, 32, 32, 3), "rank 5, expected 4"),
    ],
    ids=str,
)
@KIND
def test_images_of_wrong_shapes(
    kind: str, directory: Callable[[str], Path], shape: tuple[int, ...], said: str
) -> None:
    with pytest.raises(ShapeError, match=said):
        gptrs.load(directory(kind)).module(np.zeros(shape, np.float32))


BASIC: dict[str, Any] = {"layer_type": "basic", "depths": [1, 2, 1, 1]}
BAD_FIELDS: list[tuple[str, str, object, str]] = [
    ("resnet", "layer_type", "basics", "expected one of basic, bottleneck"),
    ("resnet", "hidden_act", "gelu_2027", "expected one of gelu"),
    ("resnet", "hidden_sizes", 8, "expected list of int"),
    ("resnet", "hidden_sizes", [8, 12.0, 16, 20], "expected list of int"),
    ("resnet", "hidden_sizes", [8, 12, 16], "depths has 4 entries and hidden_sizes 3"),
    ("resnet", "hidden_sizes", [], "depths has 4 entries"),
    ("resnet", "depths", [1, 0, 1, 1], "expected at least 1"),
    ("resnet", "embedding_size", 0, "expected at least 1"),
    ("resnet", "num_channels", "3", "expected int"),
    ("resnet", "downsample_in_bottleneck", 1, "expected bool"),
    ("mobilenet_v2", "depth_multiplier", 0, "expected a number above 0"),
    ("mobilenet_v2", "depth_multiplier", "1", "expected float"),
    ("mobilenet_v2", "expand_ratio", float("nan"), "expected a number above 0"),
    ("mobilenet_v2", "layer_norm_eps", -1, "finite number from 0"),
    ("mobilenet_v2", "depth_divisible_by", 0, "expected at least 1"),
    ("mobilenet_v2", "hidden_act", "gelu_2027", "expected one of gelu"),
    ("mobilenet_v2", "image_size", [1, 2, 3], "expected one or two"),
    ("mobilenet_v2", "image_size", [], "expected one or two"),
    ("mobilenet_v2", "image_size", "224", "expected int or list of int"),
    ("mobilenet_v2", "tf_padding", None, "expected bool"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "field", "value", "said"), BAD_FIELDS, ids=lambda value: str(value)[:20]
)
def test_bad_fields(
    directory: Callable[[str], Path],
    tmp_path: Path,
    kind: str,
    field: str,
    value: object,
    said: str,
) -> None:
    arrays = load_arrays(directory(kind) / "model.safetensors")
    fields = {"model_type": kind} | (BASIC if kind == "resnet" else {}) | {field: value}
    write(tmp_path / "model.safetensors", arrays, **fields)
    with pytest.raises(LoadError, match=said) as caught:
        gptrs.load(tmp_path)
    assert str(tmp_path / "config.json") in str(caught.value)
    assert field in str(caught.value)
