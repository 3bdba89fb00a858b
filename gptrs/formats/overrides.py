"""``runtime.functional_overrides``: the implementation policies of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gptrs.errors import LoadError
from gptrs.jit.overrides import Policies, parse


def read_overrides(runtime: Mapping[str, Any], file: Path) -> Policies:
    """The policies in ``{"functional_overrides": {"softmax": "force=portable"}}``.

    Raises `LoadError` naming the file.
    """
    given: object = runtime.get("functional_overrides")
    if given is None:
        return ()
    return parse(given, f"{file}: runtime.functional_overrides", LoadError)
