"""Chats: answers whole and in pieces, thoughts, what ends an answer, defaults of the makers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gptrs
from gptrs.errors import ArgumentError, LoadError
from gptrs.loading.language_model import LanguageModel
from gptrs.text.chat import ChatCompletion, ChatStream, chat_request
from tests.support.chat_models import CHAT_VOCABULARY, TURNS, by_heart, tiny_chat
from tests.support.chat_templates import CHAT_ML, QWEN_3, USER
from tests.support.models import END_ID

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]
THINKS = CHAT_ML.replace("assistant\\n' }}{% endif", "assistant\\n<think>\\n' }}{% endif")


def ask(
    template: str, answer: str, *, thinking: str = "hide", **options: Any
) -> tuple[list[tuple[str, str]], ChatCompletion]:
    chat, _ = by_heart(template, HELLO, answer)
    stream = ChatStream(chat, chat_request(HELLO, thinking=thinking), options)
    return [(piece.kind, str(piece)) for piece in stream], stream.result


def test_an_answer() -> None:
    pieces, result = ask(CHAT_ML, "Good day, é 😀.")
    assert "".join(text for _, text in pieces) == result.text == "Good day, é 😀."
    assert {kind for kind, _ in pieces} == {"content"}
    assert result.message == {"role": "assistant", "content": "Good day, é 😀."}
    assert (result.finish_reason, result.cached_tokens) == ("stop", 0)
    assert result.completion_tokens == len("Good day, é 😀.".encode())


def test_the_form_of_the_api() -> None:
    _, result = ask(CHAT_ML, "Yes", max_tokens=2)
    given = json.loads(json.dumps(result.as_dict()))
    assert given.pop("id").startswith("chatcmpl-")
    assert given.pop("created") > 1.7e9
    prompt = result.prompt_tokens
    assert given == {
        "object": "chat.completion",
        "model": "by heart",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Ye"},
                "logprobs": None,
                "finish_reason": "length",
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": 2,
            "total_tokens": prompt + 2,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }


@pytest.mark.parametrize(
    ("template", "answer"),
    [(QWEN_3, "<think>\nHm.\n</think>\n\nYes."), (THINKS, "Hm.\n</think>\n\nYes.")],
    ids=["the model begins", "the template begins"],
)
@pytest.mark.parametrize("thinking", ["hide", "show"])
def test_thoughts(template: str, answer: str, thinking: str) -> None:
    pieces, result = ask(template, answer, thinking=thinking)
    shown = {kind: "".join(text for k, text in pieces if k == kind) for kind, _ in pieces}
    assert shown == {"content": "Yes."} | ({"reasoning": "Hm."} if thinking == "show" else {})
    assert result.message == {
        "role": "assistant",
        "content": "Yes.",
        "reasoning_content": "Hm.",
    }


def test_a_template_is_told_not_to_think() -> None:
    chat, _ = by_heart(QWEN_3, HELLO, "")
    stream = ChatStream(chat, chat_request(HELLO, thinking="off"), {"max_tokens": 1})
    assert stream.prompt.endswith("<think>\n\n</think>\n\n")
    asked = chat_request(HELLO, template_variables={"enable_thinking": False})
    assert ChatStream(chat, asked, {}).prompt == stream.prompt


def test_an_answer_goes_on() -> None:
    messages = [*HELLO, {"role": "assistant", "content": "Good"}]
    chat, _ = by_heart(CHAT_ML, HELLO, "Good day")
    stream = ChatStream(chat, chat_request(messages, continue_final_message=True), {})
    assert stream.prompt.endswith("assistant\nGood")
    assert stream.result.text == " day"


def test_a_stop_string_ends_an_answer() -> None:
    pieces, result = ask(CHAT_ML, "one two three", stop=" t")
    assert "".join(text for _, text in pieces) == result.text == "one"
    assert result.finish_reason == "stop"


def test_closing_ends_an_answer() -> None:
    chat, model = by_heart(CHAT_ML, HELLO, "Good é day")
    stream = ChatStream(chat, chat_request(HELLO), {})
    said = [next(stream) for _ in range(3)]
    stream.close()
    assert list(stream) == []
    calls = len(model.calls)
    assert stream.result.text == "".join(said) == "Goo"
    assert (stream.result.finish_reason, len(model.calls)) == ("stop", calls)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"logprobs": 1}, "logprobs is 1, and chat gives messages alone"),
        ({"topk": 1}, "unknown option 'topk'"),
        ({"temperature": -1}, "option temperature is -1"),
    ],
    ids=str,
)
def test_wrong_options(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem):
        ask(CHAT_ML, "", **options)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"thinking": "yes"}, "thinking is 'yes', expected one of 'hide', 'show', 'off'"),
        ({"template_variables": 1}, "template_variables is a int"),
        ({"tools": "x"}, "tools is a str, expected a list"),
        ({"tools": ["x"]}, r"tools\[0\] is a str, expected a mapping"),
        ({"system": 1}, "system is a int, expected text"),
    ],
    ids=str,
)
def test_wrong_requests(asked: dict[str, Any], problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem):
        chat_request(HELLO, **asked)


def test_a_system_prompt_comes_first() -> None:
    assert chat_request(HELLO, system="Be brief.").messages == [
        {"role": "system", "content": "Be brief."},
        *HELLO,
    ]
    with pytest.raises(ArgumentError, match="the role 'system', expected one"):
        chat_request([{"role": "system", "content": "x"}], system="y")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_chat(tmp_path_factory.mktemp("chat"))


@pytest.fixture(scope="module")
def model(directory: Path) -> LanguageModel:
    return gptrs.load(directory)


def test_the_answer_is_the_text_after_the_template(model: LanguageModel) -> None:
    text = f"{TURNS[0]}user\nHello{TURNS[1]}\n{TURNS[0]}assistant\n"
    ids = model.tokenizer.encode(text)
    end = CHAT_VOCABULARY - 1
    assert ids[-len("assistant\n") - 1] == end - 1, "special tokens are found in the text"
    said = list(model.stream_tokens(ids, max_tokens=20, logit_bias={end: -100.0}))
    result = model.chat(HELLO, max_tokens=20, logit_bias={end: -100.0})
    assert result.text == model.tokenizer.decode(said)
    assert (result.prompt_tokens, result.completion_tokens) == (len(ids), len(said))
    assert result.model == model.place.name


def test_what_the_model_reads(model: LanguageModel) -> None:
    text = f"{TURNS[0]}user\nHello{TURNS[1]}\n{TURNS[0]}assistant\n"
    assert model.chat_prompt(HELLO) == text
    assert model.chat(HELLO, stream=True).prompt == text
    named = model.chat_prompt(HELLO, system="Be brief.", chat_template="plain")
    assert named == "Be brief.\nHello"


def test_the_end_of_a_turn_ends_an_answer(model: LanguageModel) -> None:
    """It is none of the end-of-text tokens of the configuration."""
    result = model.chat(HELLO, max_tokens=20, logit_bias={CHAT_VOCABULARY - 1: 100.0})
    assert (result.text, result.completion_tokens, result.finish_reason) == ("", 0, "stop")
    ended = model.chat(HELLO, max_tokens=20, logit_bias={END_ID: 100.0})
    assert ended.completion_tokens == 0
    went_on = model.chat(HELLO, max_tokens=4, logit_bias={END_ID: 100.0}, ignore_eos=True)
    assert went_on.completion_tokens == 4


def test_the_begin_of_text_is_not_doubled(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, processors

    made = tiny_chat(tmp_path, "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}")
    backend: Any = Tokenizer.from_file(str(made / "tokenizer.json"))
    backend.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", pair=None, special_tokens=[("<|endoftext|>", END_ID)]
    )
    backend.save(str(made / "tokenizer.json"))
    model = gptrs.load(made)
    assert model.tokenizer.encode("Hi")[0] == END_ID
    assert model.chat([USER], max_tokens=0).prompt_tokens == len(
        model.tokenizer.encode(USER["content"])
    )


def test_turns_of_a_session(model: LanguageModel) -> None:
    session = model.session()
    messages, cached = HELLO, list[int]()
    for text in ("And then?", "Why?", "Oh."):
        result = session.chat(messages, max_tokens=12, temperature=0.8, seed=1)
        again = model.chat(messages, max_tokens=12, temperature=0.8, seed=1)
        assert (result.message, result.finish_reason) == (again.message, again.finish_reason)
        cached.append(result.cached_tokens)
        messages = [*messages, result.message, {"role": "user", "content": text}]
    assert cached[0] == 0
    assert cached[1] > 0
    assert cached[2] > cached[1]


GIVEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"temperature": 0.6, "top_p": 0.9}, {}),
    (
        {"do_sample": True, "temperature": 0.6, "top_p": 0.9},
        {"temperature": 0.6, "top_p": 0.9, "top_k": 50},
    ),
    ({"do_sample": True, "top_k": 0, "min_p": 0.0}, {"temperature": 1.0}),
    (
        {"do_sample": True, "top_k": 20, "min_p": 0.1, "temperature": None},
        {"temperature": 1.0, "top_k": 20, "min_p": 0.1},
    ),
    (
        {"repetition_penalty": 1.1, "max_new_tokens": 7},
        {"repetition_penalty": 1.1, "max_tokens": 7},
    ),
]


@pytest.mark.parametrize(("config", "options"), GIVEN, ids=str)
def test_defaults_of_the_makers(
    tmp_path: Path, config: dict[str, Any], options: dict[str, Any]
) -> None:
    made = tiny_chat(tmp_path)
    (made / "generation_config.json").write_text(json.dumps(config))
    model = gptrs.load(made)
    assert model.generation_defaults == options
    chosen = {"max_tokens": 9, "seed": 3}
    assert model.chat(HELLO, **chosen).message == model.chat(HELLO, **options | chosen).message
    assert model.generate("Hi", max_tokens=9) == model.generate("Hi", max_tokens=9, seed=3)
    if "max_tokens" in options:
        assert model.chat(HELLO, ignore_eos=True).completion_tokens == 7


def test_the_makers_length_is_cut_to_the_context(tmp_path: Path) -> None:
    made = tiny_chat(tmp_path, n_positions=48)
    (made / "generation_config.json").write_text('{"max_new_tokens": 2048, "eos_token_id": [9, 8]}')
    model = gptrs.load(made)
    result = model.chat(HELLO, logit_bias={9: 1.0}, ignore_eos=True)
    assert result.prompt_tokens + result.completion_tokens == 48
    assert model.chat(HELLO, logit_bias={8: 100.0}).completion_tokens == 0
    with pytest.raises(ArgumentError, match="max_tokens is 2048"):
        model.chat(HELLO, max_tokens=2048)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"do_sample": 1}, "do_sample is 1, expected true or false"),
        ({"do_sample": True, "temperature": "hot"}, "option temperature is 'hot'"),
        ({"repetition_penalty": 0}, "option repetition_penalty is 0"),
    ],
    ids=str,
)
def test_a_wrong_generation_config(tmp_path: Path, config: dict[str, Any], problem: str) -> None:
    made = tiny_chat(tmp_path)
    (made / "generation_config.json").write_text(json.dumps(config))
    with pytest.raises(LoadError, match=f"generation_config.json: {problem}"):
        gptrs.load(made).chat(HELLO)


def test_a_model_without_a_template(good: Path) -> None:
    model = gptrs.load(good)
    assert not model.has_chat_template
    with pytest.raises(LoadError, match="has no chat template") as raised:
        model.chat(HELLO)
    assert "chat_template='plain'" in raised.value.fix
    result = model.chat(HELLO, chat_template="plain", max_tokens=9)
    assert result.text == model.generate("Hello", max_tokens=9)
    with pytest.raises(ArgumentError, match="chat_template is 'llama', expected one of 'plain'"):
        model.chat(HELLO, chat_template="llama")
