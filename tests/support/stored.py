"""Shared by tests of tensor files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from gptrs.formats.checkpoint import CheckpointFile

Arrays = dict[str, NDArray[Any]]


def read_checkpoint(path: Path) -> Arrays:
    """The tensors of a checkpoint by their names, in their order."""
    return {name: tensor.read() for name, tensor in CheckpointFile.open(path).tensors.items()}


def assert_same(found: Arrays, expected: Arrays) -> None:
    """The same arrays bit for bit, in the same order."""
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, nothing that is written reaches the disk."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
