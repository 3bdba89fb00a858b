"""Spinning of torch's idle OpenMP threads, which take cores from the other side.

OpenMP reads the number when it is loaded, hence the restart.
"""

from __future__ import annotations

import os
import sys

_SETTING = "GOMP_SPINCOUNT"


def restart_with(turns: str) -> None:
    """Run this command anew unless torch's threads spin ``turns`` turns ("default": as they do)."""
    if turns not in ("default", os.environ.get(_SETTING)):
        os.environ[_SETTING] = turns
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
