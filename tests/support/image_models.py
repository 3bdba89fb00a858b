"""Small image models of torch with random weights and statistics, and directories of them.

transformers' models are its own; torchvision's are in `tests.support.torchvision_models`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gptrs
from gptrs.ir.parameter import Parameter
from tests.support.lazy_torch import torch, transformers
from tests.support.models import Arrays, save_arrays

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
            if isinstance(part, torch.nn.BatchNorm2d):
                assert part.running_mean is not None
                assert part.running_var is not None
                for tensor, low, high in (
                    *((part.weight, 0.6, 1.4), (part.bias, -0.3, 0.3)),
                    *((part.running_mean, -0.3, 0.3), (part.running_var, 0.5, 1.5)),
                ):
                    uniform(tensor, low, high)
            elif isinstance(part, torch.nn.Conv2d | torch.nn.Linear):
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


def state(model: torch.nn.Module) -> Arrays:
    """The tensors of a torch model by their names."""
    return {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}


def write(file: Path, arrays: Mapping[str, NDArray[Any]], **config: Any) -> Path:
    """A file of weights, and a ``config.json`` beside it if there are fields for one."""
    save_arrays(dict(arrays), file)
    if config:
        (file.parent / "config.json").write_text(json.dumps(config))
    return file
