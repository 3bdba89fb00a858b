"""``runtime.weight_streaming``: supported fields, and errors for the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import events
from gptrs.errors import LoadError
from gptrs.formats.checkpoint import CheckpointFile, write_checkpoint
from gptrs.loading.convert import convert
from gptrs.loading.weights import WeightRead
from tests.support.models import config, load_arrays, random_tokens, tiny_gpt2

TOKENS = random_tokens(1, 7)


@pytest.fixture(params=["directory", "checkpoint"])
def form(request: pytest.FixtureRequest) -> str:
    return request.param


def model(place: Path, form: str, streaming: Any) -> Path:
    runtime = {"weight_streaming": streaming}
    directory = tiny_gpt2(place / "model", n_layer=3, runtime=runtime)
    if form == "directory":
        return directory
    arrays = load_arrays(directory / "model.safetensors")
    settings = config(n_layer=3)
    write_checkpoint(place / "x.gchk", "gpt", settings, arrays, runtime=runtime)
    return place / "x.gchk"


def stored(place: Path) -> int:
    arrays = load_arrays(place / "model" / "model.safetensors")
    return sum(array.nbytes for array in arrays.values())


def held() -> int:
    estimate = gptrs.estimate_memory(config(n_layer=3), context=1)
    return estimate.weights + estimate.packed


@pytest.mark.parametrize(
    "streaming",
    [
        {},
        {"enabled": False},
        {"enabled": True},
        {"enabled": True, "device_weights_percent": 1.0, "small_param_persist_threshold": 100},
        {"enabled": True, "device_budget_bytes": 10**9, "cache_budget_cap_bytes": None},
    ],
    ids=str,
)
def test_what_holds_anyway(tmp_path: Path, form: str, streaming: Any) -> None:
    found = gptrs.load(model(tmp_path, form, streaming)).forward(TOKENS).numpy()
    plain = gptrs.load(tiny_gpt2(tmp_path / "plain", n_layer=3)).forward(TOKENS).numpy()
    np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("field", ["device_budget_bytes", "cache_budget_cap_bytes"])
def test_a_budget_is_what_the_model_holds_or_more(tmp_path: Path, form: str, field: str) -> None:
    exact = held()
    enough = {"enabled": True, field: exact}
    loaded = gptrs.load(model(tmp_path / "enough", form, enough))
    gptrs.parameter_cache.release()
    assert list(loaded.stream_tokens(TOKENS[0].tolist(), max_tokens=3))
    assert 0.98 * exact < gptrs.parameter_cache.info().bytes <= exact
    with pytest.raises(LoadError) as raised:
        gptrs.load(model(tmp_path / "less", form, {"enabled": True, field: exact - 1}))
    assert "runtime.weight_streaming allows" in raised.value.problem
    assert "leave runtime.weight_streaming out" in raised.value.fix


def test_the_least_of_several_budgets(tmp_path: Path, form: str) -> None:
    several = {"enabled": True, "device_budget_bytes": 10**9, "cache_budget_cap_bytes": 1000}
    with pytest.raises(LoadError, match=r"allows 1\.0 kB of weights in memory"):
        gptrs.load(model(tmp_path, form, several))


def test_a_part_of_the_weights(tmp_path: Path, form: str) -> None:
    place = model(tmp_path, form, {"enabled": True, "device_weights_percent": 0.25})
    said = f"allows {stored(tmp_path) // 4 / 1000:.1f} kB of weights"
    with pytest.raises(LoadError, match=said):
        gptrs.load(place)


@pytest.mark.parametrize("layers", [0, 2, 9])
def test_layers_that_are_read_first(tmp_path: Path, form: str, layers: int) -> None:
    place = model(tmp_path, form, {"enabled": True, "prefetch_layers": layers})
    read: list[WeightRead] = []
    with events.listen(lambda e: read.append(e) if isinstance(e, WeightRead) else None):
        loaded = gptrs.load(place)
    blocks = {f"h.{number}." for number in range(min(layers, 3))}
    names = {n for n in loaded.parameters() if n[:4] in blocks}
    assert {each.name for each in read} == names
    assert {n for n, p in loaded.parameters().items() if p.in_memory} == names
    assert len(names) == 12 * min(layers, 3)


@pytest.mark.parametrize(
    ("streaming", "said"),
    [
        (True, "runtime.weight_streaming is True, expected an object"),
        ({"enabled": 1}, ".enabled is 1, expected true or false"),
        ({"enabled": True, "device_budget_bytes": "1GB"}, ".device_budget_bytes is '1GB', expec"),
        ({"enabled": True, "device_budget_bytes": -1}, "is -1, expected an integer from 0 up"),
        ({"enabled": True, "prefetch_layers": 1.5}, ".prefetch_layers is 1.5, expected an integer"),
        ({"enabled": True, "prefetch_layers": True}, ".prefetch_layers is True, expected a number"),
        (
            {"enabled": True, "device_weights_percent": 1.5},
            ".device_weights_percent is 1.5, expected a number from 0 to 1",
        ),
        ({"enabled": True, "budget": 5}, "has an entry 'budget', expected some of enabled, device"),
        ({"prefetch_layers": 1}, ".enabled is not true, and prefetch_layers is given"),
        (
            {"enabled": False, "cache_budget_cap_bytes": 5},
            ".enabled is not true, and cache_budget_cap_bytes is given",
        ),
    ],
    ids=str,
)
def test_what_is_refused(tmp_path: Path, form: str, streaming: Any, said: str) -> None:
    place = model(tmp_path, form, streaming)
    with pytest.raises(LoadError) as raised:
        gptrs.load(place)
    assert said in raised.value.problem
    assert str(place) in raised.value.problem


def test_conversion_keeps_it(tmp_path: Path) -> None:
    streaming = {"enabled": True, "device_budget_bytes": 1}
    place = model(tmp_path, "checkpoint", streaming)
    convert(place, tmp_path / "written")
    written = json.loads((tmp_path / "written" / "config.json").read_text())
    assert written["runtime"] == {"weight_streaming": streaming}
    convert(tmp_path / "written", tmp_path / "again.gchk", force=True)
    assert CheckpointFile.open(tmp_path / "again.gchk").runtime == written["runtime"]
