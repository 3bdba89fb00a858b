"""Detection of torchvision's state dicts: the model type and naming scheme from tensor names."""

from __future__ import annotations

from gptrs.errors import LoadError
from gptrs.formats.tensor_files import ModelTensors
from gptrs.models.torchvision import TORCHVISION, Naming


def torchvision_naming(kind: str, tensors: ModelTensors) -> Naming | None:
    """torchvision's naming scheme for a model of the ``kind``; None if the tensors do not follow
    it."""
    naming = TORCHVISION.get(kind)
    return naming if naming is not None and naming.fits(tensors.shapes()) else None


def torchvision_kind(tensors: ModelTensors) -> str:
    """The ``model_type`` of weights without a configuration. Raises `LoadError`."""
    for kind in TORCHVISION:
        if torchvision_naming(kind, tensors) is not None:
            return kind
    raise LoadError(
        f"{tensors.place}: its tensors are not named as in torchvision's"
        f" {' or '.join(TORCHVISION)}, the models that need no config.json",
        fix="load the directory that holds this file and its config.json; export and convert take"
        " another one with --config",
    )
