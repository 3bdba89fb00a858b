"""Tests of the suite that are known to fail, each with its reason."""

from __future__ import annotations

DEVIATIONS: dict[str, str] = {}
"""The reason by the end of a test's id: ``test_file.py::test_name``, with its parameters or not."""


def reason_of(test: str, deviations: dict[str, str]) -> str:
    """Why ``test`` is known to fail; empty where it is not."""
    name = test.split("/")[-1]
    return deviations.get(name) or deviations.get(name.split("[")[0], "")
