"""What a model can be written as, and under whose names."""

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


class Names(StrEnum):
    """Whose names of tensors and whose configuration a file has, other than those that it came
    with."""

    GPT_RS = "gpt.rs"
    """Of checkpoints that gpt.rs reads."""
