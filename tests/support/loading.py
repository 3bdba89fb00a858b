"""Loading a damaged model directory, and ways to damage one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gptrs
from gptrs.errors import LoadError
from gptrs.loading.language_model import LanguageModel
from tests.support.models import load_arrays, save_arrays

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


def refusal(path: Path, *expected: str, use: Callable[[LanguageModel], object] = id) -> LoadError:
    """The error of loading ``path`` and using the model, whose text holds all that is expected."""
    with pytest.raises(LoadError) as caught:
        use(gptrs.load(path))
    for part in (str(path), *expected):
        assert part in str(caught.value)
    assert caught.value.__cause__ is None
    assert "\n" not in caught.value.problem
    return caught.value


def change_config(directory: Path, **fields: Any) -> None:
    file = directory / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def change_tensors(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    arrays = load_arrays(directory / WEIGHTS)
    change(arrays)
    save_arrays(arrays, directory / WEIGHTS)
