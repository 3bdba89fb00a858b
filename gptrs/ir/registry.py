"""The registry of ops: definitions, redefinitions, and a revision that tells what is stale.

`OPS` maps names to ops. A user's op may be defined again, as a cell of a notebook that runs twice
does: the new definition takes its place. What was made of an older registry (programs, compiled
functions) compares `revision` and is made anew.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from gptrs.errors import ArgumentError
from gptrs.ir.dispatch import OPS
from gptrs.locks import new_lock

RESERVED: set[str] = set()
"""Names of the vocabulary that are no ops."""

_lock = new_lock()
_revisions = count(1)
_revision = 0


def revision() -> int:
    """Changes with every change of the registry that an existing program may depend on."""
    return _revision


def changed() -> None:
    """Make what depends on the registry stale."""
    global _revision
    _revision = next(_revisions)


def is_builtin(op: Any) -> bool:
    """Whether this package defines the op."""
    return op.__module__.partition(".")[0] == "gptrs"


def define(op: Any) -> None:
    """Enter ``op`` under its name. Raises `ArgumentError` for a name that is taken."""
    with _lock:
        known = OPS.get(op.name)
        if known is not None and (is_builtin(known) or _place(known) != _place(op)):
            raise ArgumentError(
                f"there is an op {op.name!r} already, which {known.__module__} defines",
                fix="choose another name",
            )
        if (op.name in RESERVED and not is_builtin(op)) or not op.name.isidentifier():
            raise ArgumentError(f"an op cannot be called {op.name!r}", fix="choose another name")
        OPS[op.name] = op
        if known is not None:
            changed()


def remove(op: Any) -> None:
    """Take a user's op out. Raises `ArgumentError` for others."""
    with _lock:
        if is_builtin(op) or OPS.get(op.name) is not op:
            raise ArgumentError(f"{op.name} is no op of yours")
        del OPS[op.name]
        changed()


def named(name: str) -> Any:
    """The op called ``name``: how copies and pickles find it."""
    return OPS[name]


def _place(op: Any) -> tuple[str, str]:
    """Where an op is defined: the same place means the same op, defined again."""
    return op.__module__, op.__qualname__
