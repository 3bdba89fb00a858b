"""``runtime.weight_streaming`` of a configuration: weight budget and prefetched layers.

The fields are those of gpt.rs (``crates/gpt-rs/src/model/config.rs``). Here weights are always read
on first use, and stay in memory; a budget that cannot be met is refused at loading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from gptrs.byte_sizes import size_text
from gptrs.errors import LoadError
from gptrs.lazy_dataclass import dataclass
from gptrs.loading.loaded_model import LoadedModel

_FIELD = "runtime.weight_streaming"
_LEAVE_OUT = f"leave {_FIELD} out of the configuration; gptrs convert writes it to a config.json"


@dataclass(frozen=True)
class WeightStreaming:
    """The entries; None where absent."""

    enabled: bool | None = None
    device_budget_bytes: int | None = None
    """The limit on the bytes of weights, as packed for kernels; so are the next two."""
    device_weights_percent: float | None = None
    """The limit as a fraction, 0 to 1, of the bytes in the files; 1 is no limit."""
    cache_budget_cap_bytes: int | None = None
    prefetch_layers: int | None = None
    """The number of blocks whose weights are read at loading."""
    small_param_persist_threshold: int | None = None
    """Weights up to this size stay in memory; here all do."""

    @classmethod
    def read(cls, runtime: Mapping[str, Any], file: Path) -> WeightStreaming:
        """The entry of ``runtime``. Raises `LoadError` naming ``file``."""
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
        """The limit in bytes for a model with ``stored`` bytes in files; None: no limit."""
        limits = [self.device_budget_bytes, self.cache_budget_cap_bytes]
        part = self.device_weights_percent
        if part is not None and part < 1:
            limits.append(int(stored * part))
        return min((limit for limit in limits if limit is not None), default=None)


def stream_weights(model: LoadedModel) -> None:
    """Apply the weight streaming options of a loaded model.

    Raises `LoadError` for a budget below its weights: a program holds all weights that it uses.
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
    """The expected value of an entry; empty if ``value`` is valid."""
    if name == "enabled":
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "a number"
    if name == "device_weights_percent":
        return "" if 0 <= value <= 1 else "a number from 0 to 1"
    return "" if isinstance(value, int) and value >= 0 else "an integer from 0 up"


def _wrong(file: Path, entry: str, found: object, expected: str) -> LoadError:
    return LoadError(f"{file}: {_FIELD}{entry} is {found!r}, expected {expected}", fix="mend it")
