"""Entry points: what installed packages offer under a name.

They are read from the metadata of all installed packages, which takes milliseconds: only where a
name is not known otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptrs.errors import ArgumentError
from gptrs.locks import no_fork

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def offered(group: str, name: str | None = None) -> tuple[EntryPoint, ...]:
    """The entry points of a group, those of one name only if it is given."""
    with no_fork:
        from importlib.metadata import entry_points  # slow, and seldom needed

    found = entry_points(group=group)
    return tuple(found if name is None else found.select(name=name))


def place_of(entry: EntryPoint) -> str:
    """Where an entry point leads, and the distribution that has it: ``a.b:C (name 1.0)``."""
    found = entry.dist
    owner = "an unknown distribution" if found is None else f"{found.name} {found.version}"
    return f"{entry.value} ({owner})"


def load_offered(group: str, name: str, what: str) -> tuple[EntryPoint, Any] | None:
    """The entry point of this name and what it leads to; None where no package has one.

    ``what`` is the kind of thing, in errors: "a model". Raises `ArgumentError` naming the
    distributions where several differ, or where the one cannot be imported.
    """
    entries = {entry.value: entry for entry in offered(group, name)}
    if len(entries) > 1:
        raise ArgumentError(
            f"several installed packages offer {what} {name!r}:"
            f" {', '.join(sorted(map(place_of, entries.values())))}",
            fix="uninstall all but one of them",
        )
    for entry in entries.values():
        try:
            with no_fork:
                return entry, entry.load()
        except Exception as error:  # of any module
            raise ArgumentError(
                f"{what} {name!r} cannot be loaded from {place_of(entry)}:"
                f" {type(error).__name__}: {error}",
                fix="install it again, or mend it",
            ) from error
    return None
