"""Measured limits of this machine, kept on disk: multiply-adds and memory bandwidth.

A profile divides by them and draws its roofline with them. `gptrs.debug.measure_limits` measures
them for ``gptrs env --measure``. The file ``limits.json`` lies beside the folder of compiled
kernels, with an entry for each processor, vector level and number of threads; what cannot be read
in it counts as not measured.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from gptrs.backends.host import cpu_model
from gptrs.errors import ArgumentError
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.cache_folder import kernel_folder
from gptrs.lazy_dataclass import dataclass

_VERSION = 1
_MOST_BYTES = 2**20  # of a file that is read: an entry takes 200


@dataclass(frozen=True)
class Limits:
    """What this machine can do on a number of threads."""

    threads: int
    gflops: float
    """10⁹ operations of f32 a second, a multiply-add counting as two."""
    gbytes: float
    """10⁹ bytes a second, read from memory one after the other."""
    measured: str
    """The day: ``2026-01-31``."""


def limits_file() -> Path | None:
    """Where limits are kept; None where no home folder is known."""
    folder = kernel_folder()
    return None if folder is None else folder.with_name("limits.json")


def kept_limits() -> list[Limits]:
    """The limits that were measured with this processor and its present vector level, by number of
    threads. Raises `SettingError` for a GPTRS_ISA that this processor does not offer."""
    file, key = limits_file(), _key()
    entries = [] if file is None else _entries(file)
    found = {limits.threads: limits for entry in entries if (limits := _limits(entry, key))}
    return [found[threads] for threads in sorted(found)]


def limits_at(threads: int) -> Limits | None:
    """The limits on so many threads; None where they were not measured."""
    return next((limits for limits in kept_limits() if limits.threads == threads), None)


def keep_limits(measured: Iterable[Limits]) -> Path:
    """Write limits to the file, in place of those for as many threads, and return its path.

    It appears complete or not at all. Raises `ArgumentError` where it cannot be written.
    """
    file, key = limits_file(), _key()
    if file is None:
        raise ArgumentError("no home folder is known", fix="set GPTRS_CACHE_DIR to a folder")
    found = {limits.threads: limits for limits in [*kept_limits(), *measured]}
    others = [entry for entry in _entries(file) if _limits(entry, key) is None]
    entries = [*others, *({**key, **asdict(limits)} for limits in found.values())]
    text = json.dumps({"version": _VERSION, "limits": entries}, indent=1)
    unfinished = file.with_name(f".{file.name}.{os.urandom(8).hex()}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            unfinished.write_text(text, encoding="utf-8")
            os.replace(unfinished, file)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise ArgumentError(
            f"{file} cannot be written: {error.strerror or error}",
            fix="set GPTRS_CACHE_DIR to a folder that can be written",
        ) from None
    return file


def _key() -> dict[str, Any]:
    return {"cpu": cpu_model(), "isa": isa.current().name}


def _entries(file: Path) -> list[dict[str, Any]]:
    """The entries of a file; none of one that is damaged, or of another version."""
    try:
        with file.open("rb") as opened:
            text = opened.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            return []
        found: Any = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(found, dict):
        return []
    whole = cast("dict[str, Any]", found)
    entries = whole.get("limits")
    if whole.get("version") != _VERSION or not isinstance(entries, list):
        return []
    listed = cast("list[Any]", entries)
    return [cast("dict[str, Any]", entry) for entry in listed if isinstance(entry, dict)]


def _limits(entry: dict[str, Any], key: dict[str, Any]) -> Limits | None:
    """What an entry says of this machine; None for one of another, or without its numbers."""
    if any(entry.get(name) != value for name, value in key.items()):
        return None
    threads, day = entry.get("threads"), entry.get("measured")
    gflops, gbytes = entry.get("gflops"), entry.get("gbytes")
    if type(threads) is not int or threads < 1 or not isinstance(day, str):
        return None
    if not isinstance(gflops, float) or not isinstance(gbytes, float):
        return None
    if not (0 < gflops < math.inf and 0 < gbytes < math.inf):
        return None
    return Limits(threads, gflops, gbytes, day)
