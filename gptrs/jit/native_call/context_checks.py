"""What a call depends on besides its arguments and captures, as rows of checks.

The same as in the fast key (`gptrs.jit.fast_path`): the variables of the environment, context
variables, registries; and what the number of threads depends on.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from typing import Any

from gptrs import settings, tree
from gptrs.ir import dispatch, nan_watch, registry
from gptrs.ir.implementations import registry as implementations
from gptrs.jit import modes, overrides
from gptrs.jit.fast_path import assume_unchanged
from gptrs.jit.native_call.checks import Checks, NoRowsError
from gptrs.kernels.driver import threads
from gptrs.kernels.driver.driver import NativeDriver
from gptrs.kernels.native_call.rows import Op

_VARIABLES = (
    *(dispatch._current, modes._chosen, nan_watch.mode_here, overrides._scopes),
    *(assume_unchanged._entered, threads._limit),
)
_THREADS = (settings.num_threads.name, "OMP_NUM_THREADS", settings.driver.name)


def add_context(checks: Checks, names: Iterable[str], driver: NativeDriver, count: int) -> None:
    """Add the present context. ``names`` are variables of the environment; a call runs on ``count``
    threads of ``driver``. Raises `NoRowsError`."""
    if assume_unchanged._entered.get() is not None:
        raise NoRowsError  # guards are evaluated once in there
    for variable in _VARIABLES:
        checks.context(variable)
    checks.global_(tree, "generation")
    checks.global_(registry, "_revision")
    checks.length(implementations._registrations)
    _environment(checks, (*names, *_THREADS))
    if not (threads._limit.get() or settings.num_threads()):
        _cores(checks)
    checks.add(Op.AT_MOST, 0, 0, count, driver.words + 8)


def _environment(checks: Checks, names: Iterable[str]) -> None:
    environment: Any = os.environ
    texts: dict[object, object] | None = getattr(environment, "_data", None)
    if type(texts) is not dict:  # pyright: ignore[reportUnknownArgumentType]
        raise NoRowsError
    checks.global_(os, "environ")
    attributes = checks.load(Op.ATTRIBUTES, checks.constant(environment))
    checks.item(attributes, "_data", texts)
    data = checks.constant(texts)
    with checks.looked_at_once(data):
        for key in map(environment.encodekey, names):
            text = texts.get(key)
            if text is None:
                checks.absent(data, key)
            else:
                checks.held.append(key)
                checks.equal(checks.load(Op.ITEM, data, id(key)), text)


def _cores(checks: Checks) -> None:
    """The number of cores is as it was, and was looked up not long ago."""
    address = threads.RECENT.buffer_info()[0]
    checks.add(Op.BEFORE, 0, 0, address)
    (bits,) = struct.unpack("q", struct.pack("d", threads.recent_cores()))
    checks.add(Op.WORD, checks.load(Op.CONST, 0, address), 0, 8, bits)
