"""What all models have: how they are built, and how the tensors of files are named in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeAlias

from gptrs.nn.module import Module, ParameterOf

Renames: TypeAlias = tuple[tuple[re.Pattern[str], str], ...]


class Model(Module):
    """Base of models. ``docs/models.md`` writes one.

    ``__call__`` is a traced function. A model whose ``task`` is ``"causal_lm"`` gives logits for
    tokens and has ``context_length``, ``vocab_size`` and ``init_cache``, as
    `gptrs.text.generation.CausalModel` describes; one whose task is ``"image_classifier"`` gives
    logits for images and has ``image_size``, and its configuration ``num_channels`` and
    ``num_labels``.
    """

    task: ClassVar[str]
    config_type: ClassVar[type[Any]]
    """A dataclass: the fields of ``config.json`` that change what the model computes."""
    config_renames: ClassVar[Mapping[str, str]] = {}
    """Other names of those fields → their own."""
    renames: ClassVar[Renames] = ()
    """Patterns and replacements that turn the names of tensors in files into those of `build`, one
    after the other."""
    ignored: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Matches names, as they are then, of tensors that files may have and the model does not
    need."""

    config: Any

    @classmethod
    def build(cls, config: Any, parameter: ParameterOf) -> Self:
        """Put the model together from ``parameter(name, shape)``."""
        raise NotImplementedError

    @staticmethod
    def copies(config: Any) -> dict[str, str]:
        """Tensors that files may have as well as, or instead of, the one that they equal."""
        return {}
