"""``gptrs generate``: options of sampling, several prompts, log-probabilities, JSON lines."""

from __future__ import annotations

import json
import math
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

import gptrs
from gptrs import events
from gptrs.ir.types import DType, bf16
from gptrs.loading.language_model import LanguageModel
from gptrs.nn.cache import KVCache
from gptrs.text.generation import Decoded
from tests.support.cli import Cli, Done, in_process
from tests.support.models import END, END_ID


@pytest.fixture(scope="module")
def model(good: Path) -> LanguageModel:
    return gptrs.load(good)


@pytest.fixture
def cli(good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs ``gptrs generate`` on the tiny model, in this process."""
    return in_process(monkeypatch, capsys, "generate", "--model", str(good))


FLAGS: list[tuple[list[str], dict[str, Any]]] = [
    (["--temperature", "3", "--seed", "1", "--min-p", "0.2"], {"min_p": 0.2}),
    (["--repetition-penalty", "3"], {"repetition_penalty": 3.0}),
    (["--presence-penalty", "2.5"], {"presence_penalty": 2.5}),
    (["--frequency-penalty", "-2.5"], {"frequency_penalty": -2.5}),
    (
        ["--logit-bias", "104=9", "--logit-bias", "97=-inf"],
        {"logit_bias": {104: 9.0, 97: -math.inf}},
    ),
    (["--context-shift"], {"context_shift": True}),
]


@pytest.mark.parametrize(("flags", "options"), FLAGS, ids=lambda value: str(value))
def test_every_flag_counts(
    cli: Cli, model: LanguageModel, flags: list[str], options: dict[str, Any]
) -> None:
    rest: dict[str, Any] = {"temperature": 3.0, "seed": 1} if "--min-p" in flags else {}
    length = 60 if "--context-shift" in flags else 40
    text = model.generate("once", max_tokens=length, **rest, **options)
    assert cli("once", "--max-tokens", str(length), *flags) == Done(0, f"once{text}\n", "")
    if length == 40:
        assert text != model.generate("once", max_tokens=length, **rest)


def test_prompt_lookup(cli: Cli) -> None:
    flags = ["once", "--max-tokens", "20", "--logit-bias", "97=100"]
    plain = cli(*flags)
    guessed: list[object] = []
    with events.listen(guessed.append):
        assert cli(*flags, "--prompt-lookup", "4") == plain
    assert any(isinstance(event, Decoded) and event.seconds == 0 for event in guessed)


def test_a_draft(cli: Cli, good: Path) -> None:
    flags = ["once", "--max-tokens", "20"]
    plain = cli(*flags)
    guessed: list[object] = []
    with events.listen(guessed.append):
        assert cli(*flags, "--draft", str(good), "--draft-tokens", "3") == plain
    assert any(isinstance(event, Decoded) and event.seconds == 0 for event in guessed)
    both = cli(*flags, "--draft", str(good), "--prompt-lookup", "4")
    assert (both.code, both.out) == (2, "")
    assert "options draft and prompt_lookup" in both.err


def test_the_draft_has_the_cache_of_the_model(
    cli: Cli, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[DType] = []
    empty = KVCache.empty

    def noted(*given: Any) -> KVCache:
        cache = empty(*given)
        made.append(cache.keys.dtype)
        return cache

    monkeypatch.setattr(KVCache, "empty", noted)
    cli("once", "--max-tokens", "9", "--draft", str(good), "--kv-cache", "bf16")
    assert made == [bf16, bf16]


def test_a_narrow_cache(cli: Cli, good: Path) -> None:
    text = gptrs.load(good, kv_cache_dtype="f16").generate("once", max_tokens=9)
    done = cli("once", "--max-tokens", "9", "--kv-cache", "f16")
    assert done == Done(0, f"once{text}\n", "")


def test_ignore_eos(cli: Cli, model: LanguageModel) -> None:
    bias = ["--logit-bias", f"{END_ID}=100", "--max-tokens", "4", "--logprobs", "0", "--json"]
    ended = json.loads(cli("once", *bias).out)
    assert (ended["logprobs"], ended["finish_reason"]) == ([], "stop")
    went_on = json.loads(cli("once", *bias, "--ignore-eos").out)
    assert [token["token"] for token in went_on["logprobs"]] == [END] * 4
    assert (went_on["text"], went_on["finish_reason"]) == ("", "length")


def test_logprobs_in_json(cli: Cli, model: LanguageModel) -> None:
    told = json.loads(cli("once", "--max-tokens", "6", "--logprobs", "2", "--json").out)
    done = model.complete("once", max_tokens=6, logprobs=2)
    assert list(told) == ["prompt", "text", "finish_reason", "logprobs"]
    assert (told["prompt"], told["text"]) == ("once", done.text)
    assert done.logprobs is not None
    assert told["logprobs"] == [
        {
            "id": each.token,
            "token": model.tokenizer.spell(each.token),
            "logprob": each.logprob,
            "top": [
                {"id": token, "token": model.tokenizer.spell(token), "logprob": logprob}
                for token, logprob in each.top
            ],
        }
        for each in done.logprobs
    ]


def test_logprobs_in_a_table(cli: Cli, model: LanguageModel) -> None:
    done = model.complete("once", max_tokens=5, logprobs=1)
    assert done.logprobs is not None
    text, head, *lines = cli("once", "--max-tokens", "5", "--logprobs", "1").out.rsplit("\n", 7)
    assert text == "once" + done.text
    assert head.split() == ["id", "token", "logprob", "likeliest"]
    for line, told in zip(lines, done.logprobs, strict=False):
        assert line.split()[0] == str(told.token)
        assert repr(model.tokenizer.spell(told.token)) in line
        assert f"{told.logprob:.3f}" in line


def write(tmp_path: Path, text: bytes) -> str:
    (tmp_path / "prompts.txt").write_bytes(text)
    return str(tmp_path / "prompts.txt")


@pytest.mark.parametrize("text", ["once\nété\nthe fox", "once\r\nété\r\nthe fox\r\n"])
def test_a_prompt_in_each_line(cli: Cli, model: LanguageModel, tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text.encode())
    prompts = ["once", "été", "the fox"]
    texts = model.generate(prompts, max_tokens=9)
    whole = [prompt + text for prompt, text in zip(prompts, texts, strict=True)]
    options = ["--prompt-file", file, "--max-tokens", "9"]
    assert cli(*options) == Done(0, "\n\n".join(whole) + "\n", "")
    lines = [json.loads(line) for line in cli(*options, "--json", "--stats").out.split("\n")[:-1]]
    assert [line["prompt"] + line["text"] for line in lines] == whole
    assert [line["finish_reason"] for line in lines] == ["length"] * 3
    assert ["stats" in line for line in lines] == [False, False, True]
    assert lines[-1]["stats"]["decode_tokens"] == 3 * 8


def test_prompts_from_standard_input(
    cli: Cli, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"once\n\nfox\n")))
    lines = cli("--prompt-file", "-", "--max-tokens", "3", "--json").out.split("\n")[:-1]
    assert [json.loads(line)["prompt"] for line in lines] == ["once", "", "fox"]
    texts = model.generate(["once", "", "fox"], max_tokens=3)
    assert [json.loads(line)["text"] for line in lines] == texts


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--min-p", "1.5"], "min_p"),
        (["--repetition-penalty", "0"], "repetition_penalty"),
        (["--presence-penalty", "nan"], "presence_penalty"),
        (["--frequency-penalty", "inf"], "frequency_penalty"),
        (["--logit-bias", "5"], "--logit-bias is '5', expected ID=NUMBER"),
        (["--logit-bias", "a=5"], "--logit-bias is 'a=5'"),
        (["--logit-bias", "5=inf"], "logit_bias"),
        (["--logit-bias", "-5=1"], "logit_bias"),
        (["--logprobs", "-1"], "--logprobs"),
        (["once", "--prompt-file", "x"], "not both"),
    ],
    ids=str,
)
def test_wrong_usage(cli: Cli, arguments: list[str], named: str) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert named in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "arguments", "named"),
    [
        (b"", [], "is empty, expected a prompt in each line"),
        (b"\xff", [], "prompts.txt is no UTF-8 text"),
        (b"a", ["--logit-bias", "9000=1"], "token id 9000"),
        (b"a", ["--context-shift", "--ignore-eos"], "nothing ends the text"),
    ],
    ids=["empty", "bytes", "bias", "endless"],
)
def test_errors(cli: Cli, tmp_path: Path, text: bytes, arguments: list[str], named: str) -> None:
    done = cli("--prompt-file", write(tmp_path, text), *arguments)
    assert (done.code, done.out) == (1, "")
    assert named in done.err
    assert "Traceback" not in done.err


def test_a_prompt_file_that_is_not_there(cli: Cli) -> None:
    done = cli("--prompt-file", "/no/where")
    assert (done.code, done.out) == (1, "")
    assert "/no/where" in done.err


@pytest.mark.slow
def test_a_profile(cli: Cli, good: Path, tmp_path: Path) -> None:
    out = tmp_path / "steps.jsonl"
    options = ["--model", str(good), "--max-tokens", "3", "--profile", "--profile-out", str(out)]
    done = cli("ab", *options)
    assert done.code == 0
    assert "gpt_rs.faer.matmul.f32.v1" in done.err
    assert any('"op": "matmul"' in line for line in out.read_text().splitlines())
    refused = cli("ab", "--model", str(good), "--profile-out", "a.txt")
    assert refused.code == 2
    assert "use trace.json, flame.speedscope.json or steps.jsonl" in refused.err
