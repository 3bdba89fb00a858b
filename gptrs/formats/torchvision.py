"""Weights that torchvision saved: what kind of model they are, and how they are named."""

from __future__ import annotations

from gptrs.errors import LoadError
from gptrs.formats.tensor_files import ModelTensors
from gptrs.models.torchvision import TORCHVISION, Naming


def torchvision_naming(kind: str, tensors: ModelTensors) -> Naming | None:
    """How torchvision names the tensors of a model of the ``kind``; None if these are not named
    so."""
    naming = TORCHVISION.get(kind)
    return naming if naming is not None and naming.fits(tensors.shapes()) else None


def torchvision_kind(tensors: ModelTensors) -> str:
    """The ``model_type`` of the model whose weights alone are there. Raises `LoadError`."""
    for kind in TORCHVISION:
        if torchvision_naming(kind, tensors) is not None:
            return kind
    raise LoadError(
        f"{tensors.place}: its tensors are not named as in torchvision's"
        f" {' or '.join(TORCHVISION)}, the models that need no config.json",
        fix="load the directory that holds this file and its config.json; export and convert take"
        " another one with --config",
    )
