"""Availability of the requested peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs_bench.peers import Peers


def installed(peers: Peers[Any], asked: str, say: Callable[[str], object]) -> list[str]:
    """Those of ``asked``, commas between them, that can run here; of the others it is said what
    they lack."""
    names = [name for name in asked.split(",") if name]
    if unknown := sorted(set(names) - set(peers.required)):
        raise SystemExit(f"there is no {unknown[0]!r}, only {', '.join(peers.required)}")
    for name in names:
        if lacking := peers.missing(name):
            say(f"{name} is left out: not installed: {', '.join(lacking)}")
    return [name for name in names if not peers.missing(name)]
