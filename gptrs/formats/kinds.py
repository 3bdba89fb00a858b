"""`Format` and `Names`: the formats in which a model can be written, and foreign naming schemes."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """A file format, or a directory layout."""

    DIRECTORY = "directory"
    """``config.json`` and safetensors files, as Hugging Face lays them out."""
    CHECKPOINT = "checkpoint"
    """``GPTRSCHK``."""
    SAFETENSORS = "safetensors"
    """One file, tensors alone."""
    ARCHIVE = "archive"
    """``GPTRSTEN``, tensors alone."""


class Names(StrEnum):
    """The naming scheme of tensors and configuration, if it is not that of the source."""

    GPT_RS = "gpt.rs"
    """The scheme of checkpoints that gpt.rs reads."""
