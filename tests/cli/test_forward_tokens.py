"""``gptrs forward``: text and token ids in, likeliest tokens and logits out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import gptrs
from gptrs.formats.archive import write_archive
from gptrs.loading.language_model import LanguageModel
from tests.support.cli import Cli, in_process, rows, saved
from tests.support.pictures import picture


@pytest.fixture(scope="module")
def language(good: Path) -> LanguageModel:
    return gptrs.load(good)


@pytest.fixture
def read(good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs ``gptrs forward`` on the language model."""
    return in_process(monkeypatch, capsys, "forward", "--model", str(good))


@pytest.mark.slow
def test_text(read: Cli, language: LanguageModel, tmp_path: Path) -> None:
    logits = saved(read, tmp_path / "x.npy", "--text", "once upon")
    ids = language.tokenizer.encode("once upon")
    assert np.array_equal(logits, language.forward([ids]).numpy())
    done = read("--text", "once upon", "--top", "1", "--json")
    told = json.loads(done.out)
    likely = language.complete("once upon", max_tokens=1, logprobs=1).logprobs
    assert likely is not None
    (token, logprob) = likely[0].top[0]
    spelt = language.tokenizer.spell(token)
    assert told["input"] == "once upon"
    assert [(each["id"], each["token"]) for each in told["top"]] == [(token, spelt)]
    assert told["top"][0]["probability"] == pytest.approx(np.exp(logprob), rel=1e-4)
    head, row = rows(read("--text", "once upon", "--top", "1").out)
    assert head == ["id", "token", "probability"]
    assert row == [str(token), *repr(spelt).split(), f"{np.exp(logprob):.4f}"]


@pytest.mark.slow
def test_token_ids(read: Cli, language: LanguageModel, tmp_path: Path) -> None:
    ids = np.array([[5, 9, 200], [1, 2, 3]])
    expected = language.forward(ids).numpy()
    np.save(tmp_path / "both", ids)
    np.save(tmp_path / "first", ids[0])
    np.savez(tmp_path / "second", other=ids, tokens=ids[1:])
    write_archive(tmp_path / "both.gten", {"input_ids": ids.astype(np.int32)})
    for name in ("both.npy", "both.gten"):
        logits = saved(read, tmp_path / "x.npy", "--input", str(tmp_path / name))
        assert np.array_equal(logits, expected), name
    rows_apart = ["--input", str(tmp_path / "first.npy"), "--input", str(tmp_path / "second.npz")]
    assert np.array_equal(saved(read, tmp_path / "x.npy", *rows_apart), expected)


@pytest.fixture
def ids_alone(good: Path, tmp_path: Path) -> list[str]:
    """Options to run a language model that has no tokenizer on token ids."""
    shutil.copytree(good, tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").unlink()
    np.save(tmp_path / "ids", [5, 9, 200])
    return ["--model", str(tmp_path / "model"), "--input", str(tmp_path / "ids.npy")]


def test_token_ids_without_a_tokenizer(
    read: Cli, language: LanguageModel, ids_alone: list[str], tmp_path: Path
) -> None:
    done = read(*ids_alone, "--top", "3", "--out", str(tmp_path / "x.npy"))
    assert (done.code, done.err) == (0, "")
    head, *found = rows(done.out)
    assert head == ["id", "probability"]
    assert rows(read(*ids_alone[2:]).out)[0] == ["id", "token", "probability"]
    expected = language.forward([[5, 9, 200]]).numpy()
    assert np.array_equal(np.load(tmp_path / "x.npy"), expected)
    likely = np.argsort(-expected[0, -1])[:3]
    assert [int(token) for token, _ in found] == likely.tolist()
    told = json.loads(read(*ids_alone, "--top", "3", "--json").out)["top"]
    assert [list(each) for each in told] == [["id", "probability"]] * 3


@pytest.mark.parametrize("text", ["", "{}"], ids=["empty", "other"])
def test_a_damaged_tokenizer_is_told_before_anything_is_written(
    read: Cli, ids_alone: list[str], tmp_path: Path, text: str
) -> None:
    (tmp_path / "model" / "tokenizer.json").write_text(text)
    done = read(*ids_alone, "--out", str(tmp_path / "x.npy"))
    assert (done.code, done.out) == (1, "")
    assert "tokenizer.json" in done.err
    assert not (tmp_path / "x.npy").exists()


def test_text_needs_a_tokenizer(read: Cli, ids_alone: list[str], tmp_path: Path) -> None:
    done = read(*ids_alone[:2], "--text", "once", "--out", str(tmp_path / "x.npy"))
    assert (done.code, done.out) == (1, "")
    assert f"{tmp_path / 'model' / 'tokenizer.json'}: found No such file" in done.err
    assert not (tmp_path / "x.npy").exists()


@pytest.mark.slow
def test_bad_tokens(read: Cli, tmp_path: Path) -> None:
    picture(9, 9).save(tmp_path / "one.png")
    np.save(tmp_path / "good", [1, 2, 3])
    np.save(tmp_path / "floats", [1.0])
    np.save(tmp_path / "rank", [[[1, 2, 3]]])
    np.save(tmp_path / "long", [1, 2, 3, 4])
    for file, said in {
        tmp_path / "one.png": "is no .npy, .npz or .gten file, expected an array of token ids",
        tmp_path / "floats.npy": "holds float64[1], expected integers [tokens] or [N, tokens]",
        tmp_path / "rank.npy": "holds int64[1,1,3], expected integers",
        tmp_path / "long.npy": "has shape [4] and",
        tmp_path: "is a folder, expected an array of token ids",
    }.items():
        done = read("--input", str(tmp_path / "good.npy"), "--input", str(file))
        assert (done.code, done.out) == (1, "")
        assert f"error: {file} {said}" in done.err
    np.save(tmp_path / "beyond", [1, 9000])
    assert "tokens hold 9000" in read("--input", str(tmp_path / "beyond.npy")).err
    assert "nothing to run the model on" in read().err
    assert "--text '' gives no token, expected at least one" in read("--text", "").err
