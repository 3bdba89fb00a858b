"""`Model`, the base class of models: configuration type, tensor names, construction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

from gptrs.models.config_fields import config_from_json
from gptrs.nn.module import Module, ParameterOf

Renames: TypeAlias = tuple[tuple[re.Pattern[str], str], ...]
Stacks: TypeAlias = dict[str, tuple[tuple[str, ...], ...]]
"""By a parameter [count, rows, columns]: the matrices that are its parts, each by the names of the
tensors of its rows."""


class Model(Module):
    """Base of models. ``docs/models.md`` writes one.

    ``__call__`` is a traced function. A model whose ``task`` is ``"causal_lm"`` gives logits for
    tokens and has ``context_length``, ``vocab_size`` and ``init_cache``, as
    `gptrs.text.causal_model.CausalModel` describes; one whose task is ``"image_classifier"`` gives
    logits for images and has ``image_size``, and its configuration ``num_channels`` and
    ``num_labels``.
    """

    task: ClassVar[str]
    config_type: ClassVar[type[Any]]
    """A dataclass: the fields of ``config.json`` that change what the model computes."""
    config_renames: ClassVar[Mapping[str, str]] = {}
    """Other names of those fields → their own."""
    renames: ClassVar[Renames] = ()
    """Patterns and replacements, applied in order, from tensor names in files to those of
    `build`."""
    ignored: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Matches renamed tensors that files may contain and the model does not need."""

    config: Any

    @classmethod
    def read_config(cls, data: Mapping[str, Any], file: Path) -> Any:
        """The configuration of the entries of ``config.json``; others are ignored.

        Raises `LoadError` naming ``file`` and the entry.
        """
        return config_from_json(cls.config_type, cls.config_renames, data, file)

    @classmethod
    def build(cls, config: Any, parameter: ParameterOf) -> Self:
        """Build the model from ``parameter(name, shape)``."""
        raise NotImplementedError

    @classmethod
    def stored_name(cls, name: str) -> str:
        """The name in files that transformers reads, of a parameter called ``name`` here."""
        return name

    @staticmethod
    def copies(config: Any) -> dict[str, str]:
        """Tied tensors: names that files may contain besides, or instead of, the equal tensor."""
        return {}

    @staticmethod
    def stacks(config: Any) -> Stacks:
        """Stacked parameters that files may hold in parts, under these names after `renames`."""
        return {}
