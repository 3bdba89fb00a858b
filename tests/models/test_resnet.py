"""ResNet against transformers and torchvision's definition, of every kind and image size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gptrs
from gptrs.errors import LoadError
from gptrs.models.resnet import ResNet, ResNetConfig
from tests.support.image_models import (
    assert_parity,
    images,
    resnet,
    state,
    with_random_statistics,
    write,
    zeros,
)
from tests.support.lazy_torch import torch, torchvision
from tests.support.models import Arrays, load_arrays, save_arrays

VARIANTS: dict[str, dict[str, Any]] = {
    "basic": {},
    "bottleneck": {"layer_type": "bottleneck"},
    "stride in the first convolution": {
        "layer_type": "bottleneck",
        "downsample_in_bottleneck": True,
        "hidden_sizes": [8, 16],
        "depths": [1, 1],
    },
    "stride in the first stage": {
        "downsample_in_first_stage": True,
        "hidden_sizes": [12, 8],
        "depths": [2, 1],
    },
    "another activation": {"hidden_act": "silu", "hidden_sizes": [12], "depths": [1]},
    "grey": {"num_channels": 1, "hidden_sizes": [12], "depths": [1]},
}
SIZES: dict[str, tuple[str, Any, Any]] = {
    "resnet-18": ("basic", (64, 128, 256, 512), (2, 2, 2, 2)),
    "resnet-34": ("basic", (64, 128, 256, 512), (3, 4, 6, 3)),
    "resnet-50": ("bottleneck", (256, 512, 1024, 2048), (3, 4, 6, 3)),
}
PARAMETERS = {"resnet-18": 11_689_512, "resnet-34": 21_797_672, "resnet-50": 25_557_032}
"""As torchvision's documentation counts them, without the statistics of the normalisations."""


@pytest.mark.slow
@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS.keys())
def test_logits_of_every_variant(tmp_path: Path, fields: dict[str, Any]) -> None:
    model = resnet(tmp_path, **fields)
    assert_parity(model, tmp_path, images(2, 48, 40, fields.get("num_channels", 3)))


@pytest.mark.slow
@pytest.mark.parametrize(("height", "width"), [(33, 47), (64, 32), (5, 7)])
def test_images_of_odd_sizes(tmp_path: Path, height: int, width: int) -> None:
    assert_parity(resnet(tmp_path), tmp_path, images(2, height, width))


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "to"), [("float16", np.float16), ("bfloat16", None)])
def test_weights_are_widened(tmp_path: Path, dtype: str, to: Any) -> None:
    model = resnet(tmp_path).to(getattr(torch, dtype))
    narrow = {
        name: array.astype(to or ml_dtypes.bfloat16)
        for name, array in load_arrays(tmp_path / "model.safetensors").items()
        if array.dtype == np.float32
    }
    save_arrays(narrow, tmp_path / "model.safetensors")
    assert_parity(model.to(torch.float32), tmp_path, images(2, 32, 32))


@pytest.mark.parametrize("name", SIZES)
def test_the_known_sizes(name: str) -> None:
    kind, sizes, depths = SIZES[name]
    config = ResNetConfig(layer_type=kind, hidden_sizes=sizes, depths=depths, num_labels=1000)
    parameters = ResNet.build(config, zeros).parameters()
    trained = [p for each, p in parameters.items() if "running_" not in each]
    assert sum(int(parameter.size) for parameter in trained) == PARAMETERS[name]


class TestTorchvision:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("depths", "sizes", "is_bottleneck"),
        [((1, 2, 1, 1), (8, 16, 24, 32), False), ((2, 1, 1, 1), (16, 24, 32, 40), True)],
        ids=["basic", "bottleneck"],
    )
    def test_a_file_alone(
        self, tmp_path: Path, depths: Any, sizes: Any, is_bottleneck: bool
    ) -> None:
        model = with_random_statistics(torchvision.ResNet(depths, sizes, 8, is_bottleneck))
        path = write(tmp_path / "resnet.safetensors", state(model))
        assert_parity(model, path, images(2, 64, 45))
        config = gptrs.load(path).config
        assert (config.depths, config.hidden_sizes, config.embedding_size) == (depths, sizes, 8)
        assert config.layer_type == ("bottleneck" if is_bottleneck else "basic")
        assert config.num_labels == 7

    @pytest.fixture
    def arrays(self) -> Arrays:
        return state(torchvision.ResNet((1, 1), (8, 16), 8, False))

    def test_entries_of_a_config_count_first(self, tmp_path: Path, arrays: Arrays) -> None:
        config = {"model_type": "resnet", "hidden_act": "silu"}
        write(tmp_path / "weights.safetensors", arrays, **config)
        found = gptrs.load(tmp_path).config
        assert (found.hidden_act, found.depths, found.layer_type) == ("silu", (1, 1), "basic")
        write(tmp_path / "weights.safetensors", arrays, **config, embedding_size=9)
        with pytest.raises(LoadError, match=r"'conv1.weight' has shape \[8,3,7,7\], expected \[9,"):
            gptrs.load(tmp_path)

    @pytest.mark.parametrize(
        ("missing", "named"),
        [
            ("conv1.weight", "embedder.convolution.weight"),
            ("bn1.running_mean", "embedder.normalization.running_mean"),
            ("layer1.0.conv1.weight", "stages.0.layers.0.layer.0.convolution.weight"),
            ("layer2.0.conv2.weight", "stages.1.layers.0.layer.1.convolution.weight"),
            ("layer2.0.bn2.bias", "stages.1.layers.0.layer.1.normalization.bias"),
            ("layer2.0.downsample.1.running_var", "stages.1.layers.0.shortcut.normalization"),
            ("fc.weight", "classifier.weight"),
            ("fc.bias", "classifier.bias"),
        ],
    )
    def test_a_missing_tensor(
        self, tmp_path: Path, arrays: Arrays, missing: str, named: str
    ) -> None:
        del arrays[missing]
        path = write(tmp_path / "resnet.safetensors", arrays)
        with pytest.raises(LoadError) as caught:
            gptrs.load(path)
        assert f"{path} has no tensor '{named}" in caught.value.problem
        assert "torchvision" in caught.value.fix

    @pytest.mark.parametrize("extra", ["layer2.1.conv1.bias", "layer2.0.bn9.weight", "fc.other"])
    def test_a_tensor_without_a_place(self, tmp_path: Path, arrays: Arrays, extra: str) -> None:
        path = write(tmp_path / "resnet.safetensors", {**arrays, extra: np.zeros(3, np.float32)})
        with pytest.raises(LoadError, match=r"has no tensor|no place for tensor"):
            gptrs.load(path)

    @pytest.mark.parametrize(
        "name", ["conv1.weight", "bn1.bias", "layer1.0.conv1.weight", "fc.weight", "fc.bias"]
    )
    @pytest.mark.parametrize("shape", [(), (0,), (5,), (16, 8, 1, 1)], ids=str)
    def test_a_wrong_shape(
        self, tmp_path: Path, arrays: Arrays, name: str, shape: tuple[int, ...]
    ) -> None:
        path = write(tmp_path / "resnet.safetensors", {**arrays, name: np.zeros(shape, np.float32)})
        with pytest.raises(LoadError, match=r"has shape|expected at least 1") as caught:
            gptrs.load(path)
        assert str(path) in str(caught.value)

    def test_wider_bottlenecks_are_another_model(self, tmp_path: Path) -> None:
        arrays = state(torchvision.ResNet((1,), (16,), 8, True))
        wide = np.zeros((8, 8, 1, 1), np.float32)
        path = write(tmp_path / "wide.safetensors", {**arrays, "layer1.0.conv1.weight": wide})
        with pytest.raises(LoadError, match=r"'layer1\.0\.conv1\.weight' has shape"):
            gptrs.load(path)
