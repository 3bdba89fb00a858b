"""Opening mutated files: each is read, or refused by one error that names it, in bounded time and
memory.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from gptrs.errors import LoadError
from tests.fuzz_files.kinds import KINDS, Kind
from tests.fuzz_files.mutate import mutated

SECONDS = 5.0  # that opening and reading may take
_SPARE_BYTES = 2**18  # that any of it may take besides twice the files: buffers, parsers, errors
_LONGEST = 1000  # letters of an error that a person reads
_SHOWN = 600


class TooSlowError(BaseException):
    """Raised out of whatever runs too long; nothing catches it by accident."""


@dataclass(frozen=True)
class Finding:
    """What was wrong with how ``kind`` was read, and the folder that has its files."""

    kind: str
    number: int
    what: str
    cause: str
    """Findings of one cause are kept once."""
    place: str = ""


@dataclass
class Search:
    """Opens changed files, number by number. What it finds is kept in ``kept``."""

    seed: int
    kept: Path
    kinds: Mapping[str, Kind] = field(default_factory=lambda: KINDS)
    seconds: float = SECONDS
    read: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    findings: list[Finding] = field(default_factory=list[Finding])
    repeated: int = 0
    """How many more there were of causes that were found."""

    def run(self, first: int, last: int, current: Path | None = None) -> None:
        """The changes [first:last]; ``current`` says which one runs, should the process end."""
        with tempfile.TemporaryDirectory(prefix="gptrs-files-") as name, measured():
            samples = self._samples(Path(name))
            for number in range(first, last):
                if current is not None:
                    current.write_text(str(number))
                self._one(number, samples)

    def folder_of(self, number: int, at: Path) -> str:
        """Write the files of the change ``number`` to ``at``. Returns their kind."""
        with tempfile.TemporaryDirectory(prefix="gptrs-files-") as name:
            kind, file, data = self._change(number, self._samples(Path(name)))
            shutil.copytree(file.parent, at)
        (at / file.name).write_bytes(data)
        return kind

    def _samples(self, folder: Path) -> dict[str, Path]:
        """Good files of each kind, read once so that what opening imports is there."""
        made = {kind: folder / kind for kind in self.kinds}
        for kind, place in made.items():
            place.mkdir()
            self.kinds[kind].make(place)
            self.kinds[kind].read(place)
        return made

    def _change(self, number: int, samples: Mapping[str, Path]) -> tuple[str, Path, bytes]:
        random = Random(f"{self.seed} {number}")
        kind, other = random.choice(sorted(samples)), random.choice(sorted(samples))
        files = self.kinds[kind].changeable(samples[kind])
        file, another = random.choice(files), random.choice(sorted(samples[other].iterdir()))
        data = mutated(file.name, file.read_bytes(), another.read_bytes(), random)
        return kind, file, data

    def _one(self, number: int, samples: Mapping[str, Path]) -> None:
        kind, file, data = self._change(number, samples)
        good = file.read_bytes()
        _rewrite(file, data)
        try:
            wrong = self._wrong(kind, file.parent)
            if wrong is not None:
                self._keep(kind, number, *wrong, file.parent)
        finally:
            _rewrite(file, good)

    def _keep(self, kind: str, number: int, what: str, cause: str, folder: Path) -> None:
        if any((found.kind, found.cause) == (kind, cause) for found in self.findings):
            self.repeated += 1
            return
        place = self.kept / f"{kind}_{self.seed}_{number}"
        shutil.copytree(folder, place, dirs_exist_ok=True)
        self.findings.append(Finding(kind, number, what, cause, str(place)))

    def _wrong(self, kind: str, folder: Path) -> tuple[str, str] | None:
        """What is wrong and what that comes from; None where all is as it should be."""
        size = sum(file.stat().st_size for file in folder.iterdir())
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        try:
            with limited(self.seconds):
                given = self.kinds[kind].read(folder)
        except LoadError as error:
            self.refused[kind] += 1
            if (wrong := wrong_with(error, folder)) is not None:
                return f"{wrong}: {str(error)[:_SHOWN]}", f"{wrong} {_origin(error)}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            said = "".join(traceback.format_exception_only(error)).strip()[:_SHOWN]
            return f"{said} at {_origin(error)}", f"{type(error).__name__} {_origin(error)}"
        else:
            self.read[kind] += 1
            if given > size:
                return f"{given} bytes were read of files that have {size}", "more than there is"
        peak = tracemalloc.get_traced_memory()[1] - before
        if peak > 2 * size + _SPARE_BYTES:
            peak = min(peak, self._peak_again(kind, folder))
        if peak > 2 * size + _SPARE_BYTES:
            return f"{peak} bytes of memory for files of {size}", "memory"
        return None

    def _peak_again(self, kind: str, folder: Path) -> int:
        """Bytes that a second reading takes: a first one may fill caches and import modules, and
        what other threads of the process took at that time was counted too.
        """
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with limited(self.seconds), suppress(Exception):
            self.kinds[kind].read(folder)
        return tracemalloc.get_traced_memory()[1] - before


def _rewrite(file: Path, data: bytes) -> None:
    """Write over what is there: a file that is emptied first goes to the disk at once."""
    with file.open("r+b") as opened:
        opened.write(data)
        opened.truncate()


def wrong_with(error: LoadError, folder: Path) -> str | None:
    """What a reader would mind about an error."""
    if str(folder) not in error.problem:
        return "the error names no file"
    if not error.problem.isprintable():
        return "the error is not one line to print"
    if len(str(error)) > _LONGEST:
        return "the error is too long"
    return None


def _origin(error: BaseException) -> str:
    """The innermost line of the package in the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "gptrs" in Path(frame.filename).parts] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


@contextmanager
def measured() -> Generator[None]:
    """Inside the block, the memory that Python and NumPy take is counted."""
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


@contextmanager
def limited(seconds: float) -> Generator[None]:
    """Raise `TooSlowError` in a block of Python that takes longer."""

    def late(signum: int, frame: FrameType | None) -> None:
        raise TooSlowError(f"it takes more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
