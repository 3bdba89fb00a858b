"""``generation_config.json``: the options that a model's makers chose, in the words of gptrs.

As transformers reads it: without ``do_sample`` text is greedy, and a temperature is not looked at;
with it temperature is 1 and top-k 50 where the file has no others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.json_files import read_json
from gptrs.text.options import GenerationOptions

NAME = "generation_config.json"
_SAMPLED: dict[str, Any] = {"temperature": 1.0, "top_k": 50, "top_p": None, "min_p": None}
_ALWAYS = {
    "repetition_penalty": "repetition_penalty",
    "max_new_tokens": "max_tokens",
}
_OFF = {"top_k": 0, "min_p": 0}  # values that say "leave it out"


def read_generation_config(directory: Path) -> dict[str, Any]:
    """The entries of the file, none if there is no file. Raises `LoadError` naming it."""
    file = directory / NAME
    return read_json(file) if os.path.lexists(file) else {}


def generation_defaults(config: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """Options of `GenerationOptions` that the entries ``config`` give. Raises `LoadError`."""
    file = directory / NAME
    do_sample = config.get("do_sample")
    if do_sample is not None and not isinstance(do_sample, bool):
        raise LoadError(f"{file}: do_sample is {do_sample!r}, expected true or false")
    found: dict[str, Any] = {}
    if do_sample:
        for name, usual in _SAMPLED.items():
            value = usual if config.get(name) is None else config[name]
            if value is not None and not (type(value) is not bool and value == _OFF.get(name)):
                found[name] = value
    for name, option in _ALWAYS.items():
        if config.get(name) is not None:
            found[option] = config[name]
    try:
        GenerationOptions(**found)
    except ArgumentError as error:
        raise LoadError(f"{file}: {error.problem}", fix=error.fix) from None
    return found


def end_tokens_of(
    config: Mapping[str, Any], given: Mapping[str, Any], file: Path
) -> tuple[int, ...]:
    """The end-of-text tokens: of ``config``, the generation configuration beside ``file``, else of
    ``given``, which ``file`` holds. Raises `LoadError`."""
    found = config.get("eos_token_id")
    place = file.parent / NAME
    if found is None:
        place, found = file, given.get("eos_token_id")
    if found is None:
        return ()
    ids = cast("list[object]", found if isinstance(found, list) else [found])
    ends = tuple(i for i in ids if type(i) is int)
    if len(ends) < len(ids):
        raise LoadError(
            f"{place}: eos_token_id is {found!r}, expected an integer or several",
            fix="give the ids of the tokens that end a text, or null",
        )
    return ends


def first_token_of(config: Mapping[str, Any], given: Mapping[str, Any], file: Path) -> int | None:
    """The token that begins a text: as `end_tokens_of`."""
    found, place = config.get("bos_token_id"), file.parent / NAME
    if found is None:
        found, place = given.get("bos_token_id"), file
    if found is not None and type(found) is not int:
        raise LoadError(
            f"{place}: bos_token_id is {found!r}, expected an integer or null",
            fix="give the id of the token that begins a text, or null",
        )
    return found
