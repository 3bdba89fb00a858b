"""A mutation of captured state: a function to trace, and a change of something that it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = tuple[Callable[[Any], Any], Callable[[], Any]]  # what is traced, and a change to it
Make = Callable[[], Case]
Changes = dict[str, Make]


def collected_in(table: Changes) -> Callable[[Make], Make]:
    """A decorator that puts functions into ``table`` by their names."""

    def mutation(make: Make) -> Make:
        table[make.__name__.strip("_")] = make
        return make

    return mutation
