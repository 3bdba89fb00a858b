"""The ident of the main thread, where native code can read it.

Python handles signals in the main thread alone; in a forked child that is the thread that forked.
"""

from __future__ import annotations

import os
from array import array
from threading import main_thread

_ident = array("Q", (0,))


def _read() -> None:
    _ident[0] = main_thread().ident or 0


def main_thread_address() -> int:
    """The address of the word with the ident."""
    return _ident.buffer_info()[0]


_read()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_read)
