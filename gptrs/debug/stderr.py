"""Text on stderr that never fails: output about a program must not end that program."""

from __future__ import annotations

import sys
from contextlib import suppress


def say(text: str) -> None:
    """Write ``text`` and a newline on stderr at once; nothing where stderr is closed or its reader
    has gone."""
    if (stream := sys.stderr) is not None:
        with suppress(OSError, ValueError):
            stream.write(f"{text}\n")
            stream.flush()
