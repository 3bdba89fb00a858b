"""``runtime.weight_streaming`` of a configuration: how much of the weights may be in memory, and
what is read first.

The fields are those of gpt.rs (``crates/gpt-rs/src/model/config.rs``). Here weights are always read
when they are first needed, and stay; what cannot be kept to is refused when the model is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from gptrs.byte_sizes import size_text
from gptrs.errors import LoadError
from gptrs.loading.loaded_model import LoadedModel

_FIELD = "runtime.weight_streaming"
_LEAVE_OUT = f"leave {_FIELD} out of the configuration; gptrs convert writes it to a config.json"


@dataclass(frozen=True)
class WeightStreaming:
    """The entries, None where they are left out."""

    enabled: bool | None = None
    device_budget_bytes: int | None = None
    """The most bytes of weights, in the forms that kernels want, and so are the next two."""
    device_weights_percent: float | None = None
    """A part, from 0 to 1, of the bytes in the files; 1 is no limit."""
    cache_budget_cap_bytes: int | None = None
    prefetch_layers: int | None = None
    """The weights of so many blocks are read when the model is loaded."""
    small_param_persist_threshold: int | None = None
    """Weights of so few bytes stay once they are read, as all do here."""

    @classmethod
    def read(cls, runtime: Mapping[str, Any], file: Path) -> WeightStreaming:
        """What ``runtime`` says. Raises `LoadError` naming ``file``."""
        given: object = runtime.get("weight_streaming")
        if given is None:
            return cls()
        if not isinstance(given, dict):
            raise _wrong(file, "", given, "an object")
        entries = cast("dict[str, Any]", given)
        known = [field.name for field in fields(cls)]
        for name, value in entries.items():
            if name not in known:
                raise LoadError(
                    f"{file}: {_FIELD} has an entry {name!r}, expected some of {', '.join(known)}",
                    fix="leave it out",
                )
            if value is not None and (expected := _expected(name, value)):
                raise _wrong(file, f".{name}", value, expected)
        knobs = [name for name, value in entries.items() if name != "enabled" and value is not None]
        if knobs and not entries.get("enabled"):
            raise LoadError(
                f"{file}: {_FIELD}.enabled is not true, and {knobs[0]} is given",
                fix=f"set {_FIELD}.enabled to true, or leave {knobs[0]} out",
            )
        return cls(**entries)

    def budget(self, stored: int) -> int | None:
        """The most bytes of weights of a model whose files have ``stored``; None: any number."""
        limits = [self.device_budget_bytes, self.cache_budget_cap_bytes]
        part = self.device_weights_percent
        if part is not None and part < 1:
            limits.append(int(stored * part))
        return min((limit for limit in limits if limit is not None), default=None)


def stream_weights(model: LoadedModel) -> None:
    """Do with a model that was just loaded what its configuration says.

    Raises `LoadError` where that cannot be: a program holds all weights that it uses.
    """
    file = model.files.config_file
    streaming = WeightStreaming.read(model.files.runtime, file)
    parameters = model.parameters().values()
    budget = streaming.budget(sum(parameter.bytes for parameter in parameters))
    if budget is not None:
        estimate = model.memory().at(context=1 if model.module.task == "causal_lm" else None)
        held = estimate.weights + estimate.packed
        if held > budget:
            raise LoadError(
                f"{file}: {_FIELD} allows {size_text(budget)} of weights in memory, and the model"
                f" holds {size_text(held)} while it runs",
                fix=_LEAVE_OUT,
            )
    for parameter in parameters:
        block = re.search(r"\.(\d+)\.", parameter.name)
        if block is not None and int(block[1]) < (streaming.prefetch_layers or 0):
            parameter.numpy()


def _expected(name: str, value: Any) -> str:
    """What an entry should have been; empty: it is that."""
    if name == "enabled":
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "a number"
    if name == "device_weights_percent":
        return "" if 0 <= value <= 1 else "a number from 0 to 1"
    return "" if isinstance(value, int) and value >= 0 else "an integer from 0 up"


def _wrong(file: Path, entry: str, found: object, expected: str) -> LoadError:
    return LoadError(f"{file}: {_FIELD}{entry} is {found!r}, expected {expected}", fix="mend it")
