"""``gptrs fit`` in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gptrs.loading.estimate import estimate_memory
from tests.support.cli import Cli, in_process, rows
from tests.support.image_models import RESNET
from tests.support.models import config


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys, "fit")


@pytest.mark.slow
def test_a_table(cli: Cli, good: Path) -> None:
    done = cli(str(good), "--batch", "3", "--memory", "200MB", "--threads", "2")
    assert (done.code, done.err) == (0, "")
    said = rows(done.out)
    assert said[0] == ["context:", "48,", "batch:", "3,", "threads:", "2"]
    assert done.out.splitlines()[2:9] == str(estimate_memory(good, batch=3)).splitlines()
    assert said[10][0] == "machine:"
    assert said[11] == ["fits", "200.0", "MB"]
    assert said[12] == ["largest", "context", "at", "batch", "3:", "48"]
    largest = int(said[13][-1])
    assert estimate_memory(good, batch=largest).total <= 200_000_000
    assert estimate_memory(good, batch=largest + 1).total > 200_000_000


def test_a_narrow_cache(cli: Cli, good: Path) -> None:
    done = cli(str(good), "--kv-cache", "bf16", "--json")
    assert json.loads(done.out)["bytes"]["kv_cache"] == (
        estimate_memory(good, kv_cache_dtype="bf16").kv_cache
    )


@pytest.mark.slow
def test_json(cli: Cli, good: Path) -> None:
    options = ["--context", "40", "--batch", "2", "--dtype", "bf16", "--json"]
    done = cli(str(good / "config.json"), *options)
    assert (done.code, done.err) == (0, "")
    said = json.loads(done.out)
    estimate = estimate_memory(good, context=40, batch=2, dtype="bf16")
    assert said["bytes"] == {
        "weights": estimate.weights,
        "packed": estimate.packed,
        "kv_cache": estimate.kv_cache,
        "activations": estimate.activations,
        "loading": estimate.loading,
        "runtime": estimate.runtime,
        "total": estimate.total,
    }
    assert said["memory"] == said["machine"]["available"] <= said["machine"]["total"]
    assert (said["context"], said["batch"], said["fits"]) == (40, 2, True)
    assert said["largest_context"] == 48


def test_what_does_not_fit(cli: Cli, good: Path) -> None:
    done = cli(str(good), "--memory", "1MiB")
    assert (done.code, done.err) == (1, "")
    said = done.out.splitlines()
    assert said[11:] == [
        "does not fit 1.0 MB",
        "largest context at batch 1: none",
        "largest batch at context 48: none",
    ]
    done = cli(str(good), "--memory", "1MiB", "--json")
    assert (done.code, json.loads(done.out)["fits"]) == (1, False)


@pytest.mark.slow
def test_images(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "resnet", **RESNET}))
    done = cli(str(file), "--memory", "150MB", "--batch", "2")
    assert (done.code, done.err) == (0, "")
    said = done.out.splitlines()
    assert said[0].startswith("images: 2, threads: ")
    assert said[-1].startswith("largest batch: ")
    assert int(said[-1].split()[-1]) > 2


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--memory", "much"], 2, "--memory is 'much', expected a size such as 8GB or 500MiB"),
        (["--batch", "0"], 2, "Invalid value for '--batch'"),
        (["--context", "49"], 1, "context is 49, and the model holds 48 tokens"),
    ],
)
def test_wrong_options(cli: Cli, good: Path, options: list[str], code: int, said: str) -> None:
    done = cli(str(good), *options)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_what_is_no_model(cli: Cli, tmp_path: Path) -> None:
    done = cli(str(tmp_path / "nothing"))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: there is no model directory")
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**config(), "model_type": "unknown"}))
    done = cli(str(file))
    assert done.code == 1
    assert "model_type is 'unknown', expected one of " in done.err
