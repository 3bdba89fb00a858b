"""MobileNetV2 against transformers and torchvision's definition, of every kind and image size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs.errors import LoadError
from gptrs.models.mobilenet_v2 import MobileNetV2, MobileNetV2Config
from gptrs.nn.layers import same_padding
from tests.support.image_models import (
    assert_parity,
    images,
    mobilenet_v2,
    state,
    with_random_statistics,
    write,
    zeros,
)
from tests.support.lazy_torch import torchvision
from tests.support.models import Arrays

VARIANTS: dict[str, dict[str, Any]] = {
    "TensorFlow's padding": {},
    "torch's padding": {"tf_padding": False},
    "coarse output": {"finegrained_output": False},
    "wider": {"depth_multiplier": 0.35, "depth_divisible_by": 4, "min_depth": 4},
    "narrow": {"depth_multiplier": 0.1, "expand_ratio": 3.5},
    "an expansion in the stem": {"first_layer_is_expansion": False},
    "output stride 8": {"output_stride": 8},
    "output stride 16, torch's padding": {"output_stride": 16, "tf_padding": False},
    "another activation": {"hidden_act": "silu"},
    "layer_norm_eps": {"layer_norm_eps": 0.3},
    "grey": {"num_channels": 1},
}


@pytest.mark.slow
@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS.keys())
def test_logits_of_every_variant(tmp_path: Path, fields: dict[str, Any]) -> None:
    model = mobilenet_v2(tmp_path, **fields)
    assert_parity(model, tmp_path, images(2, 45, 32, fields.get("num_channels", 3)))


@pytest.mark.slow
@pytest.mark.parametrize(("height", "width"), [(33, 50), (64, 35), (5, 7)])
@pytest.mark.parametrize("tf_padding", [True, False])
def test_images_of_odd_sizes(tmp_path: Path, tf_padding: bool, height: int, width: int) -> None:
    model = mobilenet_v2(tmp_path, tf_padding=tf_padding)
    assert_parity(model, tmp_path, images(2, height, width))


@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 7])
def test_same_padding_is_what_the_windows_need(kernel: int, stride: int, dilation: int) -> None:
    for extent in range(1, 20):
        low, high = same_padding(extent, kernel, stride, dilation)
        covered = (kernel - 1) * dilation + 1
        assert (extent + low + high - covered) // stride + 1 == -(-extent // stride)
        assert 0 <= high - low <= 1
        if high:
            assert (extent + low + high - 1 - covered) // stride + 1 < -(-extent // stride)


class TestTorchvision:
    @pytest.mark.slow
    @pytest.mark.parametrize("width", [0.25, 0.35, 0.55])
    def test_a_file_alone(self, tmp_path: Path, width: float) -> None:
        model = with_random_statistics(torchvision.MobileNetV2(width))
        path = write(tmp_path / "mobilenet.safetensors", state(model))
        assert_parity(model, path, images(2, 64, 45))
        config = gptrs.load(path).config
        assert (config.depth_multiplier, config.num_labels) == (width, 7)
        assert (config.tf_padding, config.layer_norm_eps) == (False, 1e-5)

    @pytest.mark.slow
    @pytest.mark.parametrize("width", [0.1, 0.5, 0.74, 0.75, 1.0, 1.3, 1.37, 1.4, 2.0, 3.49])
    def test_the_width_is_found(self, tmp_path: Path, width: float) -> None:
        config = MobileNetV2Config(depth_multiplier=width, round_channels=False, num_labels=7)
        shapes = {
            name: p.shape for name, p in MobileNetV2.build(config, zeros).parameters().items()
        }
        arrays = {
            name: np.broadcast_to(np.float32(0), array.shape)
            for name, array in state(torchvision.MobileNetV2(width)).items()
        }
        path = write(tmp_path / "mobilenet.safetensors", {k: a.copy() for k, a in arrays.items()})
        found = gptrs.load(path)
        assert {name: p.shape for name, p in found.module.parameters().items()} == shapes

    @pytest.fixture
    def arrays(self) -> Arrays:
        return state(torchvision.MobileNetV2(0.1))

    def test_entries_of_a_config_count_first(self, tmp_path: Path, arrays: Arrays) -> None:
        config = {"model_type": "mobilenet_v2", "tf_padding": True, "image_size": 96}
        write(tmp_path / "weights.safetensors", arrays, **config)
        model = gptrs.load(tmp_path)
        assert (model.config.tf_padding, model.config.depth_multiplier) == (True, 0.1)
        assert model.module.image_size == 96
        write(tmp_path / "weights.safetensors", arrays, **config, depth_multiplier=1.4)
        with pytest.raises(LoadError, match=r"'features\.0\.0\.weight' has shape \[8,3,3,3\]"):
            gptrs.load(tmp_path)

    @pytest.mark.parametrize(
        ("missing", "named"),
        [
            ("features.0.0.weight", "conv_stem.first_conv.convolution.weight"),
            ("features.1.conv.1.weight", "conv_stem.reduce_1x1.convolution.weight"),
            ("features.5.conv.1.1.bias", "layer.3.conv_3x3.normalization.bias"),
            ("features.17.conv.2.weight", "layer.15.reduce_1x1.convolution.weight"),
            ("features.18.1.running_mean", "conv_1x1.normalization.running_mean"),
            ("classifier.1.weight", "classifier.weight"),
            ("classifier.1.bias", "classifier.bias"),
        ],
    )
    def test_a_missing_tensor(
        self, tmp_path: Path, arrays: Arrays, missing: str, named: str
    ) -> None:
        del arrays[missing]
        path = write(tmp_path / "mobilenet.safetensors", arrays)
        with pytest.raises(LoadError) as caught:
            gptrs.load(path)
        assert f"{path} has no tensor '{named}" in caught.value.problem

    @pytest.mark.parametrize("shape", [(), (0,), (5,), (16, 8, 1, 1)], ids=str)
    @pytest.mark.parametrize(
        "name", ["features.0.0.weight", "features.17.conv.2.weight", "classifier.1.weight"]
    )
    def test_a_wrong_shape(
        self, tmp_path: Path, arrays: Arrays, name: str, shape: tuple[int, ...]
    ) -> None:
        arrays[name] = np.zeros(shape, np.float32)
        path = write(tmp_path / "mobilenet.safetensors", arrays)
        with pytest.raises(LoadError, match=r"has shape|expected at least 1") as caught:
            gptrs.load(path)
        assert str(path) in str(caught.value)

    def test_a_tensor_without_a_place(self, tmp_path: Path, arrays: Arrays) -> None:
        arrays["features.19.conv.0.0.weight"] = np.zeros(3, np.float32)
        path = write(tmp_path / "mobilenet.safetensors", arrays)
        with pytest.raises(LoadError, match=r"no place for tensor 'features\.19\.conv\.0\.0\.weig"):
            gptrs.load(path)
