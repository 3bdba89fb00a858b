"""Small image models of torch with random weights and statistics, and directories of them.

transformers' models are its own; torchvision's are written out here with its names of parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from torch import nn

import gptrs
from gptrs.ir.tensor import Parameter
from tests.models import Arrays, save_arrays

Images = NDArray[np.float32]
TORCH_ERROR = 1e-4  # two f32 programs that sum in different orders, logits of order 1

RESNET: dict[str, Any] = {
    "embedding_size": 8,
    "hidden_sizes": [8, 12, 16, 20],
    "depths": [1, 2, 1, 1],
    "layer_type": "basic",
    "num_labels": 7,
}
MOBILENET_V2: dict[str, Any] = {"depth_multiplier": 0.25, "image_size": 48, "num_labels": 7}


def images(count: int, height: int, width: int, channels: int = 3) -> Images:
    """Random images [count, height, width, channels], normalised."""
    random = np.random.default_rng(count + height + width)
    return random.standard_normal((count, height, width, channels), np.float32)


def with_random_statistics(model: Any) -> Any:
    """``model`` with weights so large that its logits differ, ready to infer."""
    generator = torch.Generator().manual_seed(0)

    def uniform(tensor: torch.Tensor, low: float, high: float) -> None:
        tensor.copy_(torch.rand(tensor.shape, generator=generator) * (high - low) + low)

    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, nn.BatchNorm2d):
                assert part.running_mean is not None
                assert part.running_var is not None
                for tensor, low, high in (
                    *((part.weight, 0.6, 1.4), (part.bias, -0.3, 0.3)),
                    *((part.running_mean, -0.3, 0.3), (part.running_var, 0.5, 1.5)),
                ):
                    uniform(tensor, low, high)
            elif isinstance(part, nn.Conv2d | nn.Linear):
                bound = (4 / part.weight[0].numel()) ** 0.5
                uniform(part.weight, -bound, bound)
                if part.bias is not None:
                    uniform(part.bias, -0.5, 0.5)
    return model.eval()


def logits(model: Any, given: Images) -> NDArray[np.float32]:
    """What a torch model says of images [N, H, W, C]."""
    torch.set_num_threads(1)
    with torch.no_grad():
        said = model(torch.as_tensor(given.transpose(0, 3, 1, 2).copy()))
    return getattr(said, "logits", said).numpy()


def resnet(directory: Path, **fields: Any) -> Any:
    """transformers' model, saved in ``directory``; ``fields`` replace those of `RESNET`."""
    config: Any = transformers.ResNetConfig(**(RESNET | fields))
    model = with_random_statistics(transformers.ResNetForImageClassification(config))
    model.save_pretrained(directory)
    return model


def mobilenet_v2(directory: Path, **fields: Any) -> Any:
    """transformers' model, saved in ``directory``; ``fields`` replace those of `MOBILENET_V2`."""
    config: Any = transformers.MobileNetV2Config(**(MOBILENET_V2 | fields))
    model = with_random_statistics(transformers.MobileNetV2ForImageClassification(config))
    model.save_pretrained(directory)
    return model


def assert_parity(model: Any, path: Path, given: Images) -> None:
    """The model at ``path`` gives the logits of the torch ``model``."""
    expected = logits(model, given)
    assert 0.2 < expected.std() < 25, "logits of this size make the tolerance mean something"
    differ = np.ptp(expected, axis=0).max()
    assert differ > 10 * TORCH_ERROR, "so do images that differ"
    found = gptrs.load(path).forward(given).numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=TORCH_ERROR)


def zeros(name: str, shape: tuple[int, ...]) -> Parameter:
    """A parameter for a model that is only traced."""
    return Parameter(np.zeros(shape, np.float32), name)


def state(model: nn.Module) -> Arrays:
    """The tensors of a torch model by their names."""
    return {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}


def write(file: Path, arrays: Mapping[str, NDArray[Any]], **config: Any) -> Path:
    """A file of weights, and a ``config.json`` beside it if there are fields for one."""
    save_arrays(dict(arrays), file)
    if config:
        (file.parent / "config.json").write_text(json.dumps(config))
    return file


class TorchvisionBlock(nn.Module):
    """A basic block, or a bottleneck (version 1.5: the 3×3 convolution has the stride)."""

    def __init__(self, channels: int, to: int, stride: int, is_bottleneck: bool) -> None:
        super().__init__()
        inner = to // 4
        convs = [(channels, to, 3, stride), (to, to, 3, 1)]
        if is_bottleneck:
            convs = [(channels, inner, 1, 1), (inner, inner, 3, stride), (inner, to, 1, 1)]
        self.count = len(convs)
        for number, (wide, narrow, kernel, step) in enumerate(convs, 1):
            conv = nn.Conv2d(wide, narrow, kernel, step, kernel // 2, bias=False)
            self.add_module(f"conv{number}", conv)
            self.add_module(f"bn{number}", nn.BatchNorm2d(narrow))
        self.downsample = None
        if stride != 1 or channels != to:
            conv = nn.Conv2d(channels, to, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(to))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for number in range(1, self.count + 1):
            y = self.get_submodule(f"bn{number}")(self.get_submodule(f"conv{number}")(y))
            y = torch.relu(y) if number < self.count else y
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class TorchvisionResNet(nn.Module):
    """ResNet as torchvision names its parameters, of any widths."""

    def __init__(
        self, depths: tuple[int, ...], sizes: tuple[int, ...], stem: int, is_bottleneck: bool
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, stem, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(stem)
        width, self.count = stem, len(depths)
        for number, (depth, size) in enumerate(zip(depths, sizes, strict=True), 1):
            blocks: list[nn.Module] = []
            for index in range(depth):
                stride = 2 if number > 1 and index == 0 else 1
                blocks.append(TorchvisionBlock(width, size, stride, is_bottleneck))
                width = size
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
        self.fc = nn.Linear(width, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        x = nn.functional.max_pool2d(x, 3, 2, 1)
        for number in range(1, self.count + 1):
            x = self.get_submodule(f"layer{number}")(x)
        return self.fc(x.mean((2, 3)))


def _conv(channels: int, to: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(channels, to, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(to), nn.ReLU6())


class TorchvisionInvertedResidual(nn.Module):
    """A block of MobileNetV2."""

    def __init__(self, channels: int, to: int, stride: int, expand: int) -> None:
        super().__init__()
        wide = channels * expand
        expansion = [] if expand == 1 else [_conv(channels, wide, 1)]
        depthwise = _conv(wide, wide, 3, stride, wide)
        back = nn.Conv2d(wide, to, 1, bias=False)
        self.conv = nn.Sequential(*expansion, depthwise, back, nn.BatchNorm2d(to))
        self.is_residual = stride == 1 and channels == to

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x) if self.is_residual else self.conv(x)


class TorchvisionMobileNetV2(nn.Module):
    """MobileNetV2 as torchvision names its parameters and counts its channels."""

    def __init__(self, width_mult: float) -> None:
        super().__init__()

        def scaled(channels: float) -> int:
            count = max(8, int(channels + 4) // 8 * 8)
            return count + 8 if count < 0.9 * channels else count

        width, last = scaled(32 * width_mult), scaled(1280 * max(1.0, width_mult))
        features: list[nn.Module] = [_conv(3, width, 3, 2)]
        for expand, channels, count, first in (
            *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
            *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
        ):
            to = scaled(channels * width_mult)
            for index in range(count):
                stride = first if index == 0 else 1
                features.append(TorchvisionInvertedResidual(width, to, stride, expand))
                width = to
        self.features = nn.Sequential(*features, _conv(width, last, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, 7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))
