"""Where chat templates and special tokens of a directory are found: as transformers does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.chat_files import read_chat_files
from gptrs.text.chat_template import CHATML, LONGEST
from tests.support.models import byte_tokenizer

ONE, TWO, TOOL = "{{ 'one' + bos_token }}", "{{ 'two' }}", "{{ 'tool' }}"
NAMED = [{"name": "default", "template": ONE}, {"name": "tool_use", "template": TOOL}]
ADDED = {"__type": "AddedToken", "content": "</s>", "lstrip": False}
TOKENS = {"bos_token": "<s>", "eos_token": ADDED, "unk_token": None, "add_bos_token": True}

# files → the template, the template where there are tools, the special tokens
Files = dict[str, Any]
CASES: dict[str, tuple[Files, str, str, dict[str, str]]] = {
    "text": ({"tokenizer_config.json": {"chat_template": ONE}}, ONE, ONE, {}),
    "named": ({"tokenizer_config.json": {"chat_template": NAMED}}, ONE, TOOL, {}),
    "a file of its own": (
        {"tokenizer_config.json": {"chat_template": ONE}, "chat_template.jinja": TWO},
        *(TWO, TWO, {}),
    ),
    "additional files": (
        {"chat_template.jinja": TWO, "additional_chat_templates/tool_use.jinja": TOOL},
        *(TWO, TOOL, {}),
    ),
    "a processor's": ({"chat_template.json": {"chat_template": TWO}}, TWO, TWO, {}),
    "before a processor's": (
        {
            "chat_template.json": {"chat_template": TWO},
            "tokenizer_config.json": {"chat_template": ONE},
        },
        *(ONE, ONE, {}),
    ),
    "tokens": (
        {"tokenizer_config.json": {"chat_template": ONE, **TOKENS}},
        *(ONE, ONE, {"bos_token": "<s>", "eos_token": "</s>"}),
    ),
    "tokens in a map": (
        {
            "tokenizer_config.json": {"chat_template": ONE, "bos_token": "<s>"},
            "special_tokens_map.json": {"eos_token": "</s>", "pad_token": {"content": "<pad>"}},
        },
        *(ONE, ONE, {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}),
    ),
}


def write(directory: Path, files: Files) -> Path:
    for name, content in files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (directory / name).write_text(text)
    return directory


@pytest.mark.parametrize(("files", "usual", "with_tools", "tokens"), CASES.values(), ids=CASES)
def test_what_is_found(
    tmp_path: Path, files: Files, usual: str, with_tools: str, tokens: dict[str, str]
) -> None:
    found = read_chat_files(write(tmp_path, files))
    assert found.template().source == usual
    assert found.template(tools=True).source == with_tools
    assert found.special_tokens == tokens


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if "processor" not in name])
def test_it_is_what_transformers_finds(tmp_path: Path, name: str) -> None:
    transformers = pytest.importorskip("transformers")
    files, usual, with_tools, tokens = CASES[name]
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(str(write(tmp_path, files)))
    assert theirs.get_chat_template() == usual
    assert theirs.get_chat_template(tools=[{}]) == with_tools
    assert theirs.special_tokens_map == tokens


def test_templates_by_name(tmp_path: Path) -> None:
    files = {"tokenizer_config.json": {"chat_template": NAMED}}
    found = read_chat_files(write(tmp_path, files))
    assert found.template("tool_use").source == TOOL
    assert found.template("chatml").source == CHATML
    assert found.template("{{ messages }}").source == "{{ messages }}"
    with pytest.raises(ArgumentError, match="expected one of 'default', 'tool_use', 'plain'"):
        found.template("other")
    with pytest.raises(ArgumentError, match="chat_template is a int"):
        found.template(3)  # pyright: ignore[reportArgumentType]


def test_several_without_a_usual_one(tmp_path: Path) -> None:
    files = {"tokenizer_config.json": {"chat_template": NAMED[1:]}}
    found = read_chat_files(write(tmp_path, files))
    assert found.template(tools=True).source == TOOL
    with pytest.raises(LoadError, match="none of the name 'default'"):
        found.template()


def test_a_directory_without_any(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "absent"):
        with pytest.raises(LoadError, match="has no chat template"):
            read_chat_files(place).template()


WRONG: list[tuple[Files, str]] = [
    ({"tokenizer_config.json": {"chat_template": 3}}, "chat_template is 3, expected a template"),
    ({"tokenizer_config.json": {"chat_template": [3]}}, "expected a template, or a list"),
    ({"tokenizer_config.json": {"chat_template": [{"name": "default"}]}}, "expected a template"),
    ({"tokenizer_config.json": {"bos_token": 3}}, "bos_token is 3, expected a text, or null"),
    ({"tokenizer_config.json": "{"}, "tokenizer_config.json is not JSON"),
    ({"chat_template.jinja": "x" * (4 * LONGEST + 1)}, "expected at most"),
    ({"chat_template.jinja/x": ""}, "chat_template.jinja cannot be read"),
]


@pytest.mark.parametrize(("files", "problem"), WRONG, ids=lambda value: str(value)[:40])
def test_files_that_are_wrong(tmp_path: Path, files: Files, problem: str) -> None:
    with pytest.raises(LoadError, match=problem):
        read_chat_files(write(tmp_path, files))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(LoadError, match=r"chat_template\.jinja cannot be read"):
        read_chat_files(tmp_path)
