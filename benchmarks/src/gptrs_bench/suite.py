"""Suites: files that list comparisons, as JSON or YAML.

    - model: stories
      threads: [1, 2]
      bench_tokens: [1, 64]
      against: [torch, onnxruntime]
    - random: configs/resnet.json
      batch: [1, 8]

Entries have the names of `Run`'s fields, which are those of the options of ``gptrs bench``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any, cast

from gptrs.errors import ArgumentError, LoadError
from gptrs.extras import needed_for
from gptrs.models import BUNDLED
from gptrs_bench.plan import Run

_TEXTS, _COUNTS = "a list of names", "a list of integers from 1 up"
_EXPECTED = {
    "model": "a path or a name",
    "random": "the path of a config.json",
    "threads": _COUNTS,
    "bench_tokens": _COUNTS,
    "batch": _COUNTS,
    "modes": _TEXTS,
    "against": _TEXTS,
    "rounds": "an integer from 1 up",
    "backend": "the name of a backend",
}


_FREE = 2**20  # characters that aliases may stand for


def read_suite(file: Path, common: Mapping[str, Any]) -> list[Run]:
    """The comparisons in ``file``; fields that an entry does not have are those of ``common``.

    Paths are relative to the file. Raises `LoadError` naming the file, the entry, the field, what
    was found and what was expected.
    """
    read = _read(file)
    entries = cast("list[object]", read) if isinstance(read, list) else []
    if not entries:
        raise LoadError(
            f"{file} holds {_kind(cast('object', read))}, expected a list of entries",
            fix='write a list: [{"model": ..., "threads": [1, 2]}]',
        )
    return [_run(file, number, entry, common) for number, entry in enumerate(entries, 1)]


def _read(file: Path) -> object:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"{file} cannot be read: {error}") from None
    if file.suffix not in (".yaml", ".yml"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            fix = "call a YAML file .yaml"
            raise LoadError(f"{file} is not JSON: {error}", fix=fix) from None
    with needed_for(f"{file}, which is YAML,", instead="write the suite as JSON"):
        yaml: Any = import_module("yaml")
    try:
        return _from_yaml(file, text, yaml)
    except LoadError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise LoadError(f"{file} is not YAML: {error}") from None


def _from_yaml(file: Path, text: str, yaml: Any) -> object:
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if (written := _written_out(node, {})) > (most := len(text) + _FREE):
            raise LoadError(
                f"{file} has {len(text)} characters, {written:.3g} with what its aliases stand for,"
                f" expected at most {most}",
                fix="write the entries out",
            )
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _written_out(node: Any, known: dict[int, float]) -> float:
    """How long a node of YAML is, in characters and values, when each alias is replaced by what it
    stands for; infinite where it stands for what it is in."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = inf  # until it is known
    size = 1.0 + (len(node.value) if isinstance(node.value, str) else 0)
    for part in () if isinstance(node.value, str) else node.value:
        pair = cast("tuple[Any, ...]", part if isinstance(part, tuple) else (part,))
        size += sum(_written_out(each, known) for each in pair)
    known[id(node)] = size
    return size


def _run(file: Path, number: int, entry: object, common: Mapping[str, Any]) -> Run:
    at = f"{file}, entry {number}"
    if not isinstance(entry, dict):
        raise LoadError(f"{at} is {_kind(entry)}, expected an object with the fields of a run")
    given: dict[str, Any] = {}
    for name, value in cast("dict[object, object]", entry).items():
        if not isinstance(name, str) or name not in _EXPECTED:
            known = ", ".join(_EXPECTED)
            raise LoadError(f"{at}: {name!r} is no field of a run", fix=f"use some of: {known}")
        if not _fits(value, _EXPECTED[name]):
            raise LoadError(f"{at}: {name} is {value!r}, expected {_EXPECTED[name]}")
        given[name] = tuple(cast("list[object]", value)) if isinstance(value, list) else value
    if "random" in given:
        given["random"] = file.parent / given["random"]
    if "model" in given:
        given["model"] = _place(file.parent, given["model"])
    try:
        return Run(**{**common, **given})
    except ArgumentError as error:
        raise LoadError(f"{at}: {error.problem}", fix=error.fix) from None


def _place(folder: Path, model: str) -> str:
    """A model that ships with gptrs, one in ``folder``, or a name of huggingface.co."""
    beside = folder / model
    return str(beside) if model not in BUNDLED and beside.exists() else model


def _fits(value: object, expected: str) -> bool:
    if expected in (_TEXTS, _COUNTS):
        kind = str if expected == _TEXTS else int
        return isinstance(value, list) and all(
            isinstance(each, kind) and not isinstance(each, bool)
            for each in cast("list[object]", value)
        )
    if expected == _EXPECTED["rounds"]:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str)


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    return "nothing" if value is None or value == [] else repr(value)
