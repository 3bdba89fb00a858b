"""The models. A built-in one is one file and one row in `MODELS`; others are registered, or offered
by installed packages (`gptrs.models.registry`)."""

from __future__ import annotations

from pathlib import Path

from gptrs.models.base import Model
from gptrs.models.registry import MODELS, find_model, known_models, register

__all__ = ["BUNDLED", "MODELS", "Model", "find_model", "known_models", "register"]

BUNDLED: dict[str, Path] = {
    "stories": Path(__file__).parent / "stories",
}
"""The models that ship with the package."""
