"""Backends that the shared suite runs for, and what they may decline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from gptrs.backends.discovery import (
    backend_class,
    get_backend,
    known_backends,
    register_backend,
)
from gptrs.errors import ArgumentError, DTypeError
from gptrs.ir.program import Instruction, Program

REQUIRED = frozenset({"f32", "i1", "si32", "si64"})
"""What models compute in, masks, counts and tokens: dtypes that no backend declines."""


def chosen(option: str | None) -> tuple[str, ...]:
    """The backends to test: the one called ``option``, or the class at ``module:Class``; without
    an option all that are installed and need no driver. Raises `ArgumentError` for one that cannot
    be had."""
    if option is None:
        classes = {name: backend_class(name) for name in known_backends()}
        return tuple(n for n, each in classes.items() if each.missing() and not each.needs_driver)
    module, colon, attribute = option.partition(":")
    if colon:
        try:
            found = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ArgumentError(f"{option} cannot be imported: {error}") from error
        option = str(getattr(found, "name", ""))
        register_backend(option, found)
    return (get_backend(option).name,)


def is_declined(error: DTypeError, program: Program) -> bool:
    """Whether ``error`` names an op of ``program`` and a dtype there that may be declined."""
    words = set(re.findall(r"\w+", str(error)))
    return any(
        instruction.op.name in words and value.type.dtype.name in words - REQUIRED
        for instruction in instructions(program)
        for value in (*instruction.values(), *instruction.results)
    )


def instructions(program: Program) -> Iterator[Instruction]:
    """All instructions, those of branches, loop bodies and definitions after the ones that have
    them."""
    for instruction in program.body:
        yield instruction
        for region in instruction.regions():
            yield from instructions(region)
