"""Chat templates: the text of transformers, the messages that are refused, the bounds of work."""

from __future__ import annotations

import functools
import time
from typing import Any

import pytest

from gptrs.errors import ArgumentError, LoadError, PtirError
from gptrs.text.chat_template import CHATML, LONGEST, NAMED, PLAIN, ChatTemplate
from gptrs.text.template_budget import MOST
from tests.support.chat_templates import (
    ANSWER,
    CHAT_ML,
    CONVERSATIONS,
    GEMMA,
    GEMMA_3,
    LLAMA_3,
    QWEN_3,
    SPECIAL,
    TEMPLATES,
    TOOLS,
    USER,
)

OPTIONS: dict[str, dict[str, Any]] = {
    "prompt": {"add_generation_prompt": True},
    "whole": {},
    "tools": {"tools": TOOLS, "add_generation_prompt": True},
    "continued": {"continue_final_message": True},
    "not thinking": {"add_generation_prompt": True, "enable_thinking": False},
}


@functools.cache
def theirs() -> Any:
    """A tokenizer of transformers, whose templates are given with each call."""
    transformers = pytest.importorskip("transformers")
    from tests.support.models import byte_tokenizer

    return transformers.PreTrainedTokenizerFast(tokenizer_object=byte_tokenizer(), **SPECIAL)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("messages", CONVERSATIONS.values(), ids=CONVERSATIONS)
@pytest.mark.parametrize("source", TEMPLATES.values(), ids=TEMPLATES)
def test_the_text_of_transformers(
    source: str, messages: list[dict[str, Any]], options: dict[str, Any]
) -> None:
    template = ChatTemplate(source, "here", SPECIAL)
    given: Any = messages
    if isinstance(messages[0]["content"], list) and not template.reads_parts:
        given = [{"role": "user", "content": messages[0]["content"][0]["text"]}]
    try:
        expected = theirs().apply_chat_template(
            given, chat_template=source, tokenize=False, **options
        )
    except Exception:
        with pytest.raises(PtirError):
            template.render(messages, **options)
        return
    assert template.render(messages, **options) == expected


def render(source: str, messages: Any = (USER,), **options: Any) -> str:
    return ChatTemplate(source, "here", SPECIAL).render(list(messages), **options)


def test_messages_stay_as_they_are() -> None:
    messages = [USER, {**ANSWER, "tool_calls": None}]
    render(CHATML, messages, continue_final_message=True)
    assert messages == [USER, {**ANSWER, "tool_calls": None}]


@pytest.mark.parametrize(("name", "source"), NAMED.items())
def test_named_templates(name: str, source: str) -> None:
    first = "Once" if name == "plain" else "<|im_start|>user\nOnce<|im_end|>\n"
    assert render(source, [{"role": "user", "content": "Once"}]) == first


def test_plain_text_goes_on() -> None:
    turns = ["Once", " upon a time.", "Then"]
    roles = ["user", "assistant", "user"]
    messages = [{"role": role, "content": turn} for role, turn in zip(roles, turns, strict=True)]
    assert render(PLAIN, messages, add_generation_prompt=True) == "Once upon a time.\nThen"


def test_parts_are_lines_where_a_template_reads_text() -> None:
    parts = [{"type": "text", "text": "a "}, {"text": "b"}]
    message = {"role": "user", "content": parts}
    assert render(CHAT_ML, [message]) == "<|im_start|>user\na \nb<|im_end|>\n"
    with_types = {"role": "user", "content": [{"type": "text", **part} for part in parts]}
    assert render(GEMMA_3, [with_types]).endswith("user\nab<end_of_turn>\n")
    assert [ChatTemplate(each, "").reads_parts for each in (GEMMA_3, LLAMA_3, CHATML)] == [
        *(True, False, False)
    ]
    named = (
        "{% set parts = messages[0].content %}{% for part in parts %}{{ part.text }}{% endfor %}"
    )
    assert render(named, [message]) == "a b"


def test_arguments_of_calls_are_objects() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": '{"x": [1]}'}}
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert '"parameters": {"x": [1]}}' in render(LLAMA_3, messages)
    call["function"] = {"name": "f", "arguments": "not json"}
    assert '"arguments": not json}' in render(QWEN_3, messages)


MESSAGES: list[tuple[Any, str]] = [
    ("Hello", "messages is a str, expected a list of messages"),
    (USER, "messages is a dict"),
    (None, "messages is a NoneType"),
    ([], "messages is empty"),
    (["Hello"], r"messages\[0\] is a str, expected a mapping with role and content"),
    ([USER, {"content": "x"}], r"messages\[1\] has the role None, expected system, user"),
    ([{"role": 1, "content": "x"}], r"messages\[0\] has the role 1"),
    ([{"role": "user"}], r"messages\[0\] has no content, expected text"),
    ([{"role": "user", "content": 3}], r"messages\[0\] has a int as content"),
    ([{"role": "assistant", "content": None}], "no content"),
    ([{"role": "user", "content": ["x"]}], r"part 0 of the content is of type None"),
    (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
        r"messages\[0\]: part 0 of the content is of type 'image_url', expected text alone",
    ),
    ([{**USER, "x": object()}], r"messages\[0\]\['x'\] is a object, expected what JSON has"),
    ([{"role": "assistant", "tool_calls": {}}], r"messages\[0\]: tool_calls is a dict"),
    ([{"role": "assistant", "tool_calls": [{}]}], r"tool_calls holds \{\}, expected a function"),
]


@pytest.mark.parametrize(("messages", "problem"), MESSAGES, ids=lambda value: str(value)[:40])
def test_wrong_messages(messages: Any, problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem) as raised:
        ChatTemplate(CHATML, "here").render(messages)
    assert raised.value.fix


def test_what_a_template_refuses() -> None:
    with pytest.raises(
        ArgumentError, match="here: the template refuses these messages: 'System role not supp"
    ):
        render(GEMMA, CONVERSATIONS["system"])


def test_continuing_takes_no_prompt() -> None:
    with pytest.raises(ArgumentError, match="are True, expected one"):
        render(CHATML, add_generation_prompt=True, continue_final_message=True)
    with pytest.raises(ArgumentError, match="does not show the last message as it is"):
        render("{{ messages[0].content }}", [USER, ANSWER], continue_final_message=True)
    call: list[dict[str, Any]] = [USER, {"role": "assistant", "tool_calls": [{"name": "f"}]}]
    with pytest.raises(ArgumentError, match=r"messages\[1\] has no text"):
        render(CHATML, call, continue_final_message=True)


DEFECTS = {
    "{% if %}": "line 1 of the template does not work: Expected an expression",
    "\n{{ messages[0].nothing.more }}": "line 2 .* does not work: 'dict object' has no",
    "{{ x | nothing }}": "No filter named 'nothing'",
    "{% include 'other' %}": "line 1 .* no loader",
    "{{ ''.__class__.__mro__ }}": "unsafe",
    "{{ messages.append(1) }}": "access to attribute 'append' of 'list' object is unsafe",
    "{{ namespace(_x=1) }}": "takes no name that begins with _",
    "{% set ns = namespace() %}{% set ns.__x = 1 %}": "takes no name that begins with _",
    "{{ 1 / 0 }}": "division by zero",
    "{{ range(10 ** 6) }}": "Range too big",
    "{{ 10 ** 5000 }}": "4300 digits",
    "{{ lipsum() }}": "'lipsum' is undefined",
    "{{" + "(" * 5000 + ")" * 5000 + "}}": "recursion",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}": "recursion",
    " " * (LONGEST + 1): f"{LONGEST + 1} characters, expected at most {LONGEST}",
}


@pytest.mark.parametrize(("source", "problem"), DEFECTS.items(), ids=lambda value: str(value)[:30])
def test_defects(source: str, problem: str) -> None:
    with pytest.raises(LoadError, match=f"(?s)here: .*{problem}") as raised:
        render(source)
    assert "chat_template" in raised.value.fix


GROWN = "{% set ns = namespace(x=['ab', 'c']) %}{% for i in range(99) %}{% set ns.x = "
PAIRED = GROWN + "[ns.x, ns.x] %}{% endfor %}"
TOO_MUCH = {
    "loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "filtered loops": "{% for i in range(9999) %}{% for j in range(99999) if j < 0 %}{% endfor %}"
    "{% endfor %}",
    "macros": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
    "{{ f(60) }}",
    "recursive loops": "{% for x in [1] recursive %}{% if loop.depth < 60 %}{{ loop([x, x]) }}"
    "{% endif %}{% endfor %}",
    "concat": GROWN + "ns.x ~ ns.x %}{% endfor %}",
    "plus": GROWN + "ns.x + ns.x %}{% endfor %}",
    "times": "{{ 'a' * 10 ** 9 }}",
    "times a list": "{{ (10 ** 9 * [1]) | length }}",
    "power": "{{ 2 ** (2 ** 40) }}",
    "a chain of powers": "{% set ns = namespace(x=9) %}{% for i in range(99) %}"
    "{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "shared lists": PAIRED + "{{ ns.x }}",
    "shared lists as JSON": PAIRED + "{{ ns.x | tojson }}",
    "shared lists compared": PAIRED + "{{ ns.x == [ns.x[0], ns.x[1] + []] }}",
    "shared lists searched": PAIRED + "{{ [1] in ns.x }}",
    "shared lists as text": PAIRED + "{{ ns.x | string | length }}",
    "shared lists in a method": PAIRED + "{{ '{}'.format(ns.x) | length }}",
    "shared tuples as a key": GROWN + "(ns.x, ns.x) %}{% endfor %}{{ {}[ns.x] }}",
    "center": "{{ 'a' | center(10 ** 10) }}",
    "center, a method": "{{ 'a'.center(10 ** 10) }}",
    "indent": "{{ 'a\\n' | indent(10 ** 10) }}",
    "wide JSON": "{{ [[1]] | tojson(indent=10 ** 10) }}",
    "format": "{{ '%9999999999d' % 1 }}",
    "format, a filter": "{{ '%9999999999d' | format(1) }}",
    "format, a method": "{{ '{:9999999999}'.format(1) }}",
    "format with a nested width": "{{ '{:{}}'.format(1, 10 ** 10) }}",
    "format with a star": "{{ '%*d' % (10 ** 10, 1) }}",
    "replace": "{{ ('a' * 10 ** 5) | replace('a', 'b' * 10 ** 5) }}",
    "replace, a method": "{{ ('a' * 10 ** 5).replace('', 'b' * 10 ** 5) }}",
    "join": "{{ range(99999) | list | join('b' * 10 ** 5) }}",
    "join, a method": "{{ ('b' * 10 ** 5).join('a' * 10 ** 5) }}",
    "join of a range": "{{ range(99999) | join('b' * 10 ** 5) }}",
    "join of an iterator": "{{ range(99999) | map('string') | join('b' * 10 ** 5) }}",
    "join of an iterator, a method": "{{ ('b' * 10 ** 5).join(range(99999) | map('string')) }}",
    "sum": "{{ ([[1] * 1000] * 10000) | sum(start=[]) | length }}",
    "sum of an iterator": "{{ ([[1] * 1000] * 10000) | map('list') | sum(start=[]) | length }}",
    "shared lists sorted": PAIRED + "{{ [ns.x, [ns.x[0], ns.x[1] + []]] | map('list') | sort }}",
    "wordwrap": "{{ ('a' * 10 ** 5) | wordwrap(1, wrapstring='b' * 10 ** 5) }}",
    "urlize": "{{ ('www.a.de ' * 10 ** 4) | urlize(target='b' * 10 ** 5) }}",
    "bytes": "{{ (1).to_bytes(10 ** 10) }}",
    "tabs": "{{ '\\t'.expandtabs(10 ** 10) }}",
    "slices": "{% set s = 'a' * 10 ** 6 %}{% for i in range(99999) %}{% set t = s[1:] %}"
    "{% endfor %}",
    "long text in a loop": "{% for i in range(99999) %}" + "a" * 2000 + "{% endfor %}",
}


@pytest.mark.slow
@pytest.mark.parametrize("source", TOO_MUCH.values(), ids=TOO_MUCH)
def test_work_is_bounded(source: str) -> None:
    began = time.process_time()
    with pytest.raises(LoadError, match=r"here: .* takes more time or memory than a template may"):
        render(source)
    assert time.process_time() - began < 30, "it ends, on any machine"


@pytest.mark.parametrize("source", TEMPLATES.values(), ids=TEMPLATES)
def test_long_conversations_are_within_the_bounds(source: str) -> None:
    turn = [{"role": "user", "content": "x" * 99}, {"role": "assistant", "content": "y" * 99}]
    assert len(render(source, turn * 400)) > 1000
    assert MOST < 10**9


def test_one_template_serves_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    template = ChatTemplate(QWEN_3, "here")
    messages = [[{"role": "user", "content": str(n) * n}] for n in range(1, 40)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(template.render, messages))
    assert found == [template.render(each) for each in messages]
