"""torchvision's image models, written out with its names of parameters."""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
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


class ResNet(nn.Module):
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
                blocks.append(Block(width, size, stride, is_bottleneck))
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


class InvertedResidual(nn.Module):
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


class MobileNetV2(nn.Module):
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
                features.append(InvertedResidual(width, to, stride, expand))
                width = to
        self.features = nn.Sequential(*features, _conv(width, last, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, 7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))
