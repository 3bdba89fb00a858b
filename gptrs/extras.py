"""Extras: optional dependencies, and the one error where an import lacks one.

The core needs NumPy, Numba, llvmlite and ml_dtypes alone. What else a module imports, it imports
where it is used, inside `needed_for`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from gptrs.errors import MissingPackageError

EXTRAS = {
    "bench": {"gptrs_bench": "gptrs_bench", "yaml": "PyYAML"},
}
"""Extra → what it brings: modules, and the packages they are installed with."""


@contextmanager
def needed_for(what: str, *, instead: str = "") -> Generator[None]:
    """In the block, the lack of a module of `EXTRAS` is a `MissingPackageError`.

    ``what`` is what the module is imported for, ``instead`` what does without it. Modules that are
    installed and fail raise their own errors.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        for extra, modules in EXTRAS.items():
            if module in modules:
                raise MissingPackageError(
                    f"{what} needs {modules[module]}, which is not installed",
                    fix=f"pip install 'gptrs[{extra}]'" + (f", or {instead}" if instead else ""),
                ) from None
        raise
