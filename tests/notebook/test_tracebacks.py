"""Which frames of an interrupt notebooks show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gptrs.notebook.tracebacks import user_entries


def _function(module: str, line: str, **names: Any) -> Callable[[], None]:
    """A function whose code belongs to ``module``."""
    space: dict[str, Any] = {"__name__": module, **names}
    exec(f"def f():\n {line}", space)
    return space["f"]


@pytest.mark.parametrize("written", ["namedtuple_Row", "gptrs.debug.profile.steps"])
def test_written_constructors_are_no_frames_of_the_user(written: str) -> None:
    constructor = _function(written, "raise KeyboardInterrupt")
    internal = _function("gptrs.debug.profile.steps", "call()", call=constructor)
    users = _function("__main__", "call()", call=internal)
    with pytest.raises(KeyboardInterrupt) as caught:
        users()
    shown = user_entries(caught.value, caught.tb)
    modules: list[str] = []
    while shown is not None:
        modules.append(shown.tb_frame.f_globals["__name__"])
        shown = shown.tb_next
    assert modules == [__name__, "__main__"]
