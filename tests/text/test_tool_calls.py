"""Calls of tools that a model writes, in the form of the OpenAI API."""

from __future__ import annotations

from typing import Any

import pytest

from gptrs.text.chat import ChatStream, chat_request
from gptrs.text.tool_calls import parsed_calls, tool_names
from tests.support.chat_models import by_heart
from tests.support.chat_templates import QWEN_3, TOOLS, USER

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


@pytest.mark.parametrize(("content", "rest", "calls"), CASES)
def test_calls(content: str, rest: str, calls: list[tuple[str, str]]) -> None:
    found_rest, found = parsed_calls(content, {"weather"})
    functions = [call["function"] for call in found]
    assert (found_rest, [(f["name"], f["arguments"]) for f in functions]) == (rest, calls)
    assert all(call["type"] == "function" and len(call["id"]) == 9 for call in found)
    assert parsed_calls(content, ()) == (content, [])


@pytest.mark.parametrize("content", NONE, ids=lambda value: value[:30])
def test_what_is_no_call_stays_text(content: str) -> None:
    assert parsed_calls(content, {"weather"}) == (content, [])


def test_names_of_tools() -> None:
    tools: list[Any] = [*TOOLS, {"name": "time"}, {"function": 3}]
    assert tool_names(tools) == {"weather", "time"}
    assert tool_names(None) == frozenset()


def test_an_answer_with_a_call_goes_back_into_the_template() -> None:
    request = chat_request([USER], tools=TOOLS)
    chat, _ = by_heart(QWEN_3, [USER], "", tools=TOOLS)
    prompt = ChatStream(chat, request, {"max_tokens": 0}).prompt
    assert '"name": "weather"' in prompt
    answer = f"<think>\nHm.\n</think>\n\n<tool_call>\n{RAIN}\n</tool_call>"
    chat, _ = by_heart(QWEN_3, [USER], answer, tools=TOOLS)
    result = ChatStream(chat, request, {}).result
    assert result.finish_reason == "tool_calls"
    assert result.message["content"] == ""
    assert result.message["reasoning_content"] == "Hm."
    messages = [USER, result.message, {"role": "tool", "content": "rain"}]
    shown = chat.template.render(messages, tools=TOOLS)
    assert answer in shown
