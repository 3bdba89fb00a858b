"""Exceptions and warnings of the package, and tracebacks reduced to the user's frames.

Every error that is raised on purpose derives from `PtirError`: problem, context (the ops on the
way), the user's line, and a fix. `ptir.jit` and the command line cut tracebacks with
`user_traceback`; GPTRS_TRACEBACK=1 keeps all frames. Models and layers count as user code.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from reprlib import Repr
from types import FrameType, TracebackType
from typing import NamedTuple, TypeVar

from gptrs.cell_names import cell_name

E = TypeVar("E", bound=BaseException)
_END = 400  # letters that a person reads at each end of a long text
_REPR = Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 200  # letters


class PtirError(Exception):
    """Base of all errors of this package.

    ``problem`` states the value found and the value expected; ``fix`` the remedy. ``context`` (the
    ops with their operands, innermost first) and ``where`` (the user's line) are added while the
    error propagates.
    """

    def __init__(self, problem: str, *, fix: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix
        self.context: list[str] = []
        self.where: Location | None = None

    def __str__(self) -> str:
        lines = [self.problem, *(f"  in {line}" for line in self.context)]
        if self.where is not None:
            lines.append(f"  at {self.where}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class ShapeError(PtirError, ValueError):
    """Shapes or axes do not fit together."""


class PositionError(ShapeError, IndexError):
    """An axis, an index or a mask is not one of the shape."""


class DTypeError(PtirError, TypeError):
    """An element type is unknown, mixed with another, or not allowed here.

    ``operand`` has the dtype ``found`` and needs ``wanted``, where these are known.
    """

    operand: object = None
    wanted: str = ""
    found: str = ""


class DimError(PtirError, ValueError):
    """A question about a symbolic dimension that cannot be decided while tracing."""


class TraceError(PtirError, TypeError):
    """The traced function did something that has no meaning in a tensor program."""


class DonatedError(PtirError, RuntimeError):
    """A donated Tensor was used again, or something that cannot be donated was."""


class RetraceError(PtirError, RuntimeError):
    """A function was traced or compiled in a block of `ptir.no_retrace`."""


class ArgumentError(PtirError, TypeError):
    """An argument, option or attribute has a value that is not accepted."""


class UnknownNameError(ArgumentError, KeyError):
    """A mapping of names has no such name."""


class UnknownAttributeError(PtirError, AttributeError):
    """A namespace or a Tensor has no attribute of this name.

    ``find`` gives the fix when the text is read: `hasattr` does not wait for it.
    """

    def __init__(self, problem: str, *, name: str = "", find: Callable[[], str] | None = None):
        super().__init__(problem)
        self.name = name
        self._find = find

    def __str__(self) -> str:
        if self._find is not None:
            self.fix, self._find = self._find(), None
        return super().__str__()


class ElementError(PtirError, ArithmeticError):
    """An element found at run time has no result: an index out of range, a division by zero."""


class MatrixError(ElementError):
    """A matrix has no such factors, inverse or solution; raised as a `numpy.linalg.LinAlgError`
    too."""


class CheckError(ElementError, ValueError):
    """A condition of `ptir.check` does not hold."""


class NanError(ElementError, FloatingPointError):
    """A result has NaN (or an infinity) that its arguments do not have: see `ptir.debug_nans`."""


class MismatchError(PtirError, AssertionError):
    """Results of a backend are not those of the reference backend: see GPTRS_CHECK."""


class BenchError(PtirError, RuntimeError):
    """A worker process of a benchmark ended, or could not run its task."""


class VerifyError(PtirError, AssertionError):
    """A program is not well formed: a defect of a pass, a backend or a hand-written program."""


class ParseError(PtirError, ValueError):
    """A text is not a program. ``line`` and ``column`` count from 1; None for a part of a text."""

    def __init__(
        self, problem: str, *, fix: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        place = "" if line is None else f"line {line}, column {column}: "
        super().__init__(place + problem, fix=fix)
        self.line = line
        self.column = column


class SettingError(PtirError, ValueError):
    """A ``GPTRS_*`` variable has a value that cannot be read."""


class LoadError(PtirError, ValueError):
    """A model directory or file cannot be used.

    Of ``problem``, what cannot be printed is escaped, and the middle left out where it is long:
    a file may hold anything.
    """

    def __init__(self, problem: str, *, fix: str = "") -> None:
        problem = _shortened(problem)
        if not problem.isprintable():
            escaped = (c if c.isprintable() else repr(c)[1:-1] for c in problem)
            problem = _shortened("".join(escaped))
        super().__init__(problem, fix=fix)


class MissingPackageError(LoadError, ArgumentError, ImportError):
    """A package that only an extra of this one brings is not installed.

    It is a `LoadError` for whoever loads a model or a file that needs the package, and an
    `ArgumentError` for whoever asks for what it does.
    """


def _shortened(text: str) -> str:
    return text if len(text) <= 2 * _END else f"{text[:_END]} ... {text[-_END:]}"


def shown(value: object) -> str:
    """``value`` as Python writes it, shortened where it is large or deep."""
    return _REPR.repr(value)


class RetraceWarning(UserWarning):
    """Programs are being traced again and again, or evicted."""


class CaptureWarning(UserWarning):
    """A large array was captured by a traced function and became a constant of its program."""


class ImpureCallWarning(UserWarning):
    """A traced function called a clock, a random number generator or the like: its result became a
    constant of the program."""


class SideEffectWarning(UserWarning):
    """The trace of a function changed Python state outside of it, or left a traced value there;
    found with GPTRS_DEBUG."""


class NondeterminismWarning(UserWarning):
    """Two traces of a function for one call gave different programs; found with GPTRS_DEBUG."""


class RecompileWarning(UserWarning):
    """Kernels of a compiled function's file do not fit this machine, and are compiled again."""


class BackendWarning(UserWarning):
    """A device that is there was passed over when a backend was chosen."""


class SettingWarning(UserWarning):
    """A variable looks like a setting and is none."""


class NanWarning(UserWarning):
    """A `NanError` that `ptir.debug_nans("log")` reports and does not raise."""


class Location(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        """``model.py:13``; ``Cell In[5], line 13`` for code of a cell of IPython."""
        cell = cell_name(self.file)
        return f"{self.file}:{self.line}" if cell is None else f"{cell}, line {self.line}"

    def __str__(self) -> str:
        if self.function == "<module>" and cell_name(self.file) is not None:
            return self.place
        return f"{self.place} in {self.function}"


def is_internal(frame: FrameType) -> bool:
    """Whether ``frame`` runs code of this package. Models and layers count as user code: their
    lines locate an error better than the op that they call."""
    module = str(frame.f_globals.get("__name__", ""))
    if not module.startswith(("gptrs.", "gptrs_bench.")):
        return module == "gptrs"
    return not module.startswith(("gptrs.models.", "gptrs.nn."))


_starter: ContextVar[Location | None] = ContextVar("gptrs_starter", default=None)


@contextmanager
def located_threads(where: Location | None) -> Generator[None]:
    """Inside the block, ``where`` is the user's line for threads that run in copies of this
    context."""
    token = _starter.set(where)
    try:
        yield
    finally:
        _starter.reset(token)


def user_location() -> Location | None:
    """The innermost line on the stack that is not this package's own; None below its own command
    line. On a thread that runs this package alone: that of `located_threads`."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and is_internal(frame):
        frame = frame.f_back
    module = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    if module == "threading":
        return _starter.get()
    if frame is None or module.startswith("typer."):
        return None
    return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)


def warn(message: str, category: type[Warning]) -> None:
    """Warn with the user's line, whose stack level varies."""
    where = user_location()
    if where is None:
        warnings.warn(message, category, stacklevel=2)
    else:
        warnings.warn_explicit(message, category, where.file, where.line)


def raised_at(error: BaseException) -> Location | None:
    """The innermost line in the traceback of ``error`` that is not this package's own."""
    found: Location | None = None
    entry = error.__traceback__
    while entry is not None:
        if not is_internal(entry.tb_frame):
            code = entry.tb_frame.f_code
            found = Location(code.co_filename, entry.tb_lineno, code.co_qualname)
        entry = entry.tb_next
    return found


def user_traceback(error: E, *, full: bool = False) -> E:
    """``error`` with the internal frames taken out of its traceback (all of it with ``full``)."""
    kept: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        if full or not is_internal(entry.tb_frame):
            kept.append(entry)
        entry = entry.tb_next
    shortened: TracebackType | None = None
    for entry in reversed(kept):
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return error.with_traceback(shortened)
