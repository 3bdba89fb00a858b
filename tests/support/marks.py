"""Marks of tests that are left out of `make quick`."""

from __future__ import annotations

import pytest

Marks = tuple[pytest.MarkDecorator, ...]


def slow_unless(drawn: bool) -> Marks:
    """The mark of one of a large family, unless it is drawn to stand for the others."""
    return () if drawn else (pytest.mark.slow,)
