"""What a model can be written as."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """A kind of file, or a directory of files."""

    DIRECTORY = "directory"
    """``config.json`` and safetensors files, as Hugging Face lays them out."""
    CHECKPOINT = "checkpoint"
    """``GPTRSCHK``."""
    SAFETENSORS = "safetensors"
    """One file, tensors alone."""
    ARCHIVE = "archive"
    """``GPTRSTEN``, tensors alone."""
