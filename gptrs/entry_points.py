"""Entry points of installed packages, by which they offer models and backends.

`gptrs.models.registry` and `gptrs.backends.discovery` look names up here that are not built in.
Reading the metadata of all installed packages takes milliseconds, hence only on such a lookup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptrs.errors import ArgumentError
from gptrs.locks import no_fork

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def installed_entry_points(group: str, name: str | None = None) -> tuple[EntryPoint, ...]:
    """The entry points of a group, restricted to ``name`` if it is given."""
    with no_fork:
        from importlib.metadata import entry_points  # slow, and seldom needed

    found = entry_points(group=group)
    return tuple(found if name is None else found.select(name=name))


def described(entry: EntryPoint) -> str:
    """The target of an entry point and its distribution: ``a.b:C (name 1.0)``."""
    found = entry.dist
    owner = "an unknown distribution" if found is None else f"{found.name} {found.version}"
    return f"{entry.value} ({owner})"


def load_entry_point(group: str, name: str, what: str) -> tuple[EntryPoint, Any] | None:
    """The entry point of this name and the object that it loads; None where no package has one.

    ``what`` is the kind of object, in errors: "a model". Raises `ArgumentError` naming the
    distributions where several differ, or where the one cannot be imported.
    """
    entries = {entry.value: entry for entry in installed_entry_points(group, name)}
    if len(entries) > 1:
        raise ArgumentError(
            f"several installed packages offer {what} {name!r}:"
            f" {', '.join(sorted(map(described, entries.values())))}",
            fix="uninstall all but one of them",
        )
    for entry in entries.values():
        try:
            with no_fork:
                return entry, entry.load()
        except Exception as error:  # of any module
            raise ArgumentError(
                f"{what} {name!r} cannot be loaded from {described(entry)}:"
                f" {type(error).__name__}: {error}",
                fix="install it again, or mend it",
            ) from error
    return None
