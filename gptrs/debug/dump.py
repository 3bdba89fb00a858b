"""GPTRS_DUMP: programs, plans and kernels written to a folder, a numbered subfolder per program.

    0001_attend/00_traced.py       after tracing
    0001_attend/01_simplify.py     after each pass that changed it, with the number of the pass
    0001_attend/lowered.py         as the backend gets it
    0001_attend/plan.txt           the text of `explain`
    0001_attend/kernels/NAME.py    the fused loops
    0001_attend/kernels/NAME.ll    the optimised LLVM IR of each kernel; NAME.s: the assembly
    0001_attend/passes.jsonl       with GPTRS_PASS_STATS=1: statistics of each pass

The mode ``compile`` leaves out the programs between the first and the last. `gptrs.debug.watch`
creates a `Dump` for each trace.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gptrs import settings
from gptrs.backends.base import PlanReport
from gptrs.debug.explain import Explanation
from gptrs.debug.lowering import ProgramLowered, ProgramTraced
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.base import PassRan

Mode: TypeAlias = Literal["all", "compile"]
_NUMBER = re.compile(r"\d{4,18}(?=_|$)")
_LONGEST, _LONGEST_KERNEL = 60, 200  # characters of a name; a file system allows some 255 bytes


class DumpWarning(UserWarning):
    """A dump could not be written; the programs run all the same."""


@dataclass(frozen=True)
class Target:
    """The folder and the mode of dumps."""

    folder: Path
    mode: Mode


_target: ContextVar[Target | None] = ContextVar("gptrs_dump", default=None)


@contextmanager
def dump_to(folder: str | os.PathLike[str], mode: Mode = "all") -> Generator[None]:
    """Programs that are traced inside the block are written to ``folder``."""
    token = _target.set(Target(Path(folder), mode))
    try:
        yield
    finally:
        _target.reset(token)


def target() -> Target | None:
    """The target of dumps in this context: that of `dump_to`, else GPTRS_DUMP."""
    if (chosen := _target.get()) is not None:
        return chosen
    folder = settings.dump()
    return Target(Path(folder), "all") if folder else None


class Dump:
    """The folder of one program. Failures to write are one warning, and no error."""

    def __init__(self, target: Target, name: str) -> None:
        self._target = target
        self._number = 0  # of the last pass
        self._stats: list[dict[str, Any]] = []
        self._folder: Path | None = None
        with self._forgiving():
            self._folder = _new_folder(target.folder, name)

    def hear(self, event: object) -> None:
        """Write a program when it is emitted, so that a crash leaves the earlier ones behind."""
        if isinstance(event, ProgramTraced):
            self._write("00_traced.py", str(event.program))
        elif isinstance(event, ProgramLowered):
            self._write("lowered.py", str(event.program))
        elif isinstance(event, PassRan):
            self._number += 1
            file = None
            if event.after is not event.before and self._target.mode == "all":
                file = f"{self._number:02}_{_safe(event.name)}.py"
                self._write(file, str(event.after))
            self._stats.append(_stats(event, self._number, file))

    def finish(self, report: PlanReport | None) -> None:
        """Write the report of the plan, if there is one, and the statistics of the passes."""
        if settings.pass_stats():
            self._write("passes.jsonl", "".join(f"{json.dumps(row)}\n" for row in self._stats))
        if report is not None:
            explanation = Explanation(report)
            self._write("plan.txt", f"{explanation}\n")
            for name, source in explanation.sources.items():
                self._write(f"kernels/{_safe(name, _LONGEST_KERNEL)}.py", source)
            for name, kernel in explanation.kernels.items() if self._folder else ():
                self._write(f"kernels/{_safe(name, _LONGEST_KERNEL)}.ll", kernel.llvm())
                self._write(f"kernels/{_safe(name, _LONGEST_KERNEL)}.s", kernel.assembly())

    def _write(self, name: str, text: str) -> None:
        if self._folder is not None:
            with self._forgiving():
                _write(self._folder / name, text)

    @contextmanager
    def _forgiving(self) -> Generator[None]:
        try:
            yield
        except (OSError, ValueError) as error:  # a null character in a name is a ValueError
            self._folder = None
            _warn_once(self._target.folder, error)


def _stats(ran: PassRan, number: int, file: str | None) -> dict[str, Any]:
    return {
        "program": ran.before.name,
        "number": number,
        "pass": ran.name,
        "ms": round(ran.seconds * 1e3, 3),
        "instructions_before": len(ran.before.body),
        "instructions_after": len(ran.after.body),
        "rewrites": dict(Counter(ran.rewrites)),
        "changed": ran.after is not ran.before,
        "file": file,
    }


def _new_folder(parent: Path, name: str) -> Path:
    """A folder with the next free number, claimed against other threads and processes."""
    os.makedirs(parent, exist_ok=True)
    while True:
        used = (int(found[0]) for found in map(_NUMBER.match, os.listdir(parent)) if found)
        number = f"{max(used, default=0) + 1:04}"
        claimed = parent / number
        try:
            claimed.mkdir()
        except FileExistsError:
            continue
        # The previous owner of the number has renamed its folder by now, so that it is visible.
        if any(entry.startswith(f"{number}_") for entry in os.listdir(parent)):
            claimed.rmdir()
            continue
        folder = parent / f"{number}_{_safe(name)}"
        claimed.rename(folder)
        return folder


def _safe(name: str, longest: int = _LONGEST) -> str:
    """``name`` as a portable file name."""
    return re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII)[:longest].strip("_.") or "program"


def _write(path: Path, text: str) -> None:
    """Write a file atomically."""
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f".{path.name}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


_warned: set[Path] = set()


def _warn_once(folder: Path, error: Exception) -> None:
    if folder not in _warned:
        _warned.add(folder)
        reason = getattr(error, "strerror", None) or error
        warnings.warn(
            f"programs cannot be written to {str(folder)!r}: {reason}. Fix: give another folder in"
            " GPTRS_DUMP or --dump-dir.",
            DumpWarning,
            stacklevel=2,
        )
