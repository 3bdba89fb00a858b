"""Chat template and special tokens of a model directory, as transformers finds them.

| file | contents |
|---|---|
| `chat_template.jinja` | the template; before the others |
| `additional_chat_templates/NAME.jinja` | more of them, by name (``tool_use``) |
| `tokenizer_config.json` | ``chat_template``: text, or a list of named ones; special tokens |
| `chat_template.json` | ``chat_template``, in directories of processors |
| `special_tokens_map.json` | special tokens, if the above has no ``added_tokens_decoder`` |
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, cast

from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.byte_file import ByteFile
from gptrs.formats.json_files import read_json
from gptrs.lazy_dataclass import dataclass
from gptrs.text.chat_template import LONGEST, NAMED, ChatTemplate

TEMPLATE, MORE = "chat_template.jinja", "additional_chat_templates"
TOKENIZER_CONFIG = "tokenizer_config.json"
_SPECIAL = (
    *("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"),
)
_MOST_BYTES = 4 * LONGEST
_MOST_FILES = 64


@dataclass(frozen=True)
class ChatFiles:
    """The templates of a directory by name (``default`` is the usual one), the file that each is
    in, and the special tokens by the names that templates have for them."""

    directory: Path
    templates: dict[str, str] = field(default_factory=dict[str, str])
    places: dict[str, Path] = field(default_factory=dict[str, Path])
    special_tokens: dict[str, str] = field(default_factory=dict[str, str])

    def template(self, asked: str | None = None, *, tools: bool = False) -> ChatTemplate:
        """The template ``asked`` for: by its name here, by one of `NAMED`, or its text.

        Without that, the one for ``tools`` if there are some, else the usual one. Raises
        `LoadError` where the directory has none.
        """
        if asked is not None and not isinstance(asked, str):
            raise ArgumentError(
                f"chat_template is a {type(asked).__name__}, expected a name or a template",
                fix=f"pass one of {', '.join([*self.templates, *NAMED])}, or text for jinja2",
            )
        name = asked
        if name is None:
            name = "tool_use" if tools and "tool_use" in self.templates else "default"
        if name in self.templates:
            return ChatTemplate(self.templates[name], str(self.places[name]), self.special_tokens)
        if asked is not None:
            if asked.isidentifier() and asked not in NAMED:
                known = ", ".join(repr(each) for each in [*self.templates, *NAMED])
                raise ArgumentError(
                    f"chat_template is {asked!r}, expected one of {known}, or a template",
                    fix="pass one of these, or text for jinja2",
                )
            place = f"chat_template={asked!r}" if asked in NAMED else "chat_template"
            return ChatTemplate(NAMED.get(asked, asked), place, self.special_tokens)
        if self.templates:
            raise LoadError(
                f"{self.directory} has several chat templates and none of the name 'default'",
                fix=f"pass chat_template, one of {', '.join(map(repr, self.templates))}",
            )
        raise LoadError(
            f"{self.directory} has no chat template: it is a model that continues text",
            fix="call generate, or pass chat_template='plain' (text alone), 'chatml', or your own",
        )


def read_chat_files(directory: Path) -> ChatFiles:
    """The chat files of ``directory``. Raises `LoadError` naming the file that cannot be used."""
    found = ChatFiles(directory)
    if not directory.is_dir():
        return found
    config_file = directory / TOKENIZER_CONFIG
    config = read_json(config_file) if config_file.exists() else {}
    _add_entry(found, config, config_file)
    processor = directory / "chat_template.json"
    if not found.templates and processor.exists():
        _add_entry(found, read_json(processor), processor)
    own = directory / TEMPLATE
    more = sorted((directory / MORE).glob("*.jinja"))[:_MOST_FILES]
    if own.exists() or more:
        found.templates.clear()
    for file in [*([own] if own.exists() else []), *more]:
        name = "default" if file == own else file.stem
        found.templates[name], found.places[name] = _text(file), file
    tokens = directory / "special_tokens_map.json"
    if "added_tokens_decoder" not in config and tokens.exists():
        _add_tokens(found, read_json(tokens), tokens)
    _add_tokens(found, config, config_file)
    return found


def _add_entry(found: ChatFiles, data: dict[str, Any], file: Path) -> None:
    """The entry ``chat_template``: text, or a list of ``{"name": ..., "template": ...}``."""
    given = data.get("chat_template")
    if given is None:
        return
    named = {"default": given}
    if isinstance(given, list):
        entries = [
            cast("dict[object, object]", each)
            for each in cast("list[object]", given)
            if isinstance(each, dict)
        ]
        pairs = [(each.get("name"), each.get("template")) for each in entries]
        named = {name: text for name, text in pairs if isinstance(name, str)}
    if not named or not all(isinstance(text, str) for text in named.values()):
        raise LoadError(
            f"{file}: chat_template is {given!r:.80}, expected a template, or a list of objects"
            " with name and template",
            fix="take the file of the model's own page",
        )
    for name, text in named.items():
        found.templates[name], found.places[name] = cast("str", text), file


def _add_tokens(found: ChatFiles, data: dict[str, Any], file: Path) -> None:
    others = (name for name in data if name.endswith("_token") and name not in _SPECIAL)
    for name in [*_SPECIAL, *others]:
        token = data.get(name)
        if isinstance(token, dict):
            token = cast("dict[str, object]", token).get("content")
        if name in _SPECIAL and token is not None and not isinstance(token, str):
            raise LoadError(
                f"{file}: {name} is {data[name]!r:.80}, expected a text, or null",
                fix="take the file of the model's own page",
            )
        if isinstance(token, str):
            found.special_tokens[name] = token


def _text(path: Path) -> str:
    try:
        file = ByteFile(path)
        if file.size > _MOST_BYTES:
            raise LoadError(
                f"{path} has {file.size} bytes, expected at most {_MOST_BYTES}",
                fix="take the file of the model's own page",
            )
        # Line ends as in the text mode of Python, in which transformers reads it.
        return bytes(file.read(0, file.size)).decode().replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(
            f"{path} cannot be read: {error}", fix="take the file of the model's own page"
        ) from None
