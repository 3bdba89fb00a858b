"""Calls of tools that a model writes, in the form of the OpenAI API."""

from __future__ import annotations

from typing import Any

import pytest

from gptrs.errors import ArgumentError
from gptrs.text.chat import ChatStream, chat_request
from gptrs.text.chat_template import CHATML, ChatTemplate
from gptrs.text.tool_calls import CallSplitter, tool_names
from tests.support.chat_models import by_heart
from tests.support.chat_templates import (
    GEMMA,
    GEMMA_3,
    LLAMA_3,
    MACROS,
    MISTRAL,
    PHI_3,
    QWEN_3,
    SMOL_LM,
    TOOLS,
    USER,
)

RAIN = '{"name": "weather", "arguments": {"city": "Zürich"}}'
SUN = '{"name": "weather", "parameters": {}}'
TEXT = '{"name": "weather", "arguments": "as text"}'
ZURICH = ("weather", '{"city": "Z\\u00fcrich"}')

# content → the rest of it, names and arguments of calls
CASES: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("It rains.", "It rains.", []),
    (f"<tool_call>\n{RAIN}\n</tool_call>", "", [ZURICH]),
    (
        f"Let me look.\n<tool_call>{RAIN}</tool_call>\n<tool_call>{SUN}</tool_call>",
        *("Let me look.", [ZURICH, ("weather", "{}")]),
    ),
    (f"<tool_call>{RAIN}", "", [ZURICH]),
    (f" {SUN}\n", "", [("weather", "{}")]),
    (f"[{RAIN}, {TEXT}]", "", [ZURICH, ("weather", "as text")]),
]
NONE = [
    *('{"name": "other", "arguments": {}}', '{"name": "weather", "arguments": 3}', "[3]", "{}"),
    *(
        '{"name": "weather"',
        f"{RAIN} or so",
        "<tool_call>rain</tool_call>",
        '{"name": ["weather"]}',
    ),
    f"<tool_call>{RAIN}</tool_call><tool_call></tool_call>",
    "[" * 5000,
]


def split(content: str, length: int, names: set[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """What the splitter says after each ``length`` characters and at the end, and the calls."""
    splitter = CallSplitter(names)
    said = [splitter.push(content[at : at + length]) for at in range(0, len(content), length)]
    return [*said, splitter.flush()], splitter.calls


@pytest.mark.parametrize("length", [1, 5, 1000])
@pytest.mark.parametrize(("content", "rest", "calls"), CASES)
def test_calls(content: str, rest: str, calls: list[tuple[str, str]], length: int) -> None:
    said, found = split(content, length, {"weather"})
    functions = [call["function"] for call in found]
    assert ("".join(said), [(f["name"], f["arguments"]) for f in functions]) == (rest, calls)
    assert all(call["type"] == "function" and len(call["id"]) == 9 for call in found)
    assert split(content, len(content), set()) == ([content, ""], [])


@pytest.mark.parametrize("length", [1, 1000])
@pytest.mark.parametrize("content", NONE, ids=lambda value: value[:30])
def test_what_is_no_call_stays_text(content: str, length: int) -> None:
    said, calls = split(content, length, {"weather"})
    assert ("".join(said), calls) == (content, [])


def test_text_is_held_back_only_where_a_call_may_begin() -> None:
    said, _ = split("a <b> {c} <tool_x y", 1, {"weather"})
    assert said == [
        *("a", "", "", " <b", ">", "", " {", "c", "}"),
        *[""] * 7,
        " <tool_x",
        "",
        " y",
        "",
    ]


def test_names_of_tools() -> None:
    tools: list[Any] = [*TOOLS, {"name": "time"}, {"function": 3}]
    assert tool_names(tools) == {"weather", "time"}
    assert tool_names(None) == frozenset()


@pytest.mark.parametrize("template", [LLAMA_3, MISTRAL, QWEN_3, MACROS], ids=range(4))
def test_templates_that_read_tools(template: str) -> None:
    assert ChatTemplate(template, "").reads_tools


@pytest.mark.parametrize("template", [GEMMA, GEMMA_3, PHI_3, SMOL_LM, CHATML], ids=range(5))
def test_tools_that_a_template_would_hide_from_the_model(template: str) -> None:
    chat, _ = by_heart(template, [USER], "")
    with pytest.raises(ArgumentError, match="here: the template does not read tools, and 1 are"):
        ChatStream(chat, chat_request([USER], tools=TOOLS), {})
    assert ChatStream(chat, chat_request([USER], tools=[]), {}).prompt


def test_an_answer_with_a_call_goes_back_into_the_template() -> None:
    request = chat_request([USER], tools=TOOLS)
    chat, _ = by_heart(QWEN_3, [USER], "", tools=TOOLS)
    prompt = ChatStream(chat, request, {"max_tokens": 0}).prompt
    assert '"name": "weather"' in prompt
    answer = f"<think>\nHm.\n</think>\n\n<tool_call>\n{RAIN}\n</tool_call>"
    chat, _ = by_heart(QWEN_3, [USER], answer, tools=TOOLS)
    stream = ChatStream(chat, request, {})
    assert list(stream) == []
    result = stream.result
    assert result.finish_reason == "tool_calls"
    assert result.message["content"] == ""
    assert result.message["reasoning_content"] == "Hm."
    messages = [USER, result.message, {"role": "tool", "content": "rain"}]
    shown = chat.template.render(messages, tools=TOOLS)
    assert answer in shown
