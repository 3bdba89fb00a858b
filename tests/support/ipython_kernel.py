"""A kernel of IPython in another process, as a notebook has it: cells in, outputs out."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

from tests.support import ROOT

PATIENCE = 60.0  # seconds
_COLOURS = re.compile(r"\x1b\[[\d;]*m")


@dataclass
class Outputs:
    """What one cell gave."""

    text: str = ""
    """Of stdout."""
    errors: str = ""
    """Of stderr."""
    html: list[str] = field(default_factory=list[str])
    """What was displayed, as it is at the end."""
    plain: list[str] = field(default_factory=list[str])
    """The same as text."""
    shown: list[str] = field(default_factory=list[str])
    """All HTML in the order in which it was displayed, what was replaced later too."""
    traceback: str = ""
    """Of the error, without colours."""


class Kernel:
    """A running kernel."""

    def __init__(self, manager: Any, client: Any) -> None:
        self._manager, self._client = manager, client
        self.count = 0  # cells that ran

    def run(self, code: str, *, interrupt_at: str = "") -> Outputs:
        """Run a cell, and interrupt it at its first message of a kind: "stream" when it writes
        something, "display_data" when it shows something."""
        self.count += 1
        number = self._client.execute(code, allow_stdin=False)
        found, places = Outputs(), dict[str, int]()
        while True:
            message = self._client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != number:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            _take(found, places, kind, content)
            if kind == interrupt_at:
                self._manager.interrupt_kernel()
                interrupt_at = ""
        self._client.get_shell_msg(timeout=PATIENCE)
        return found


def _take(found: Outputs, places: dict[str, int], kind: str, content: dict[str, Any]) -> None:
    if kind == "stream":
        if content["name"] == "stdout":
            found.text += content["text"]
        else:
            found.errors += content["text"]
    elif kind == "error":
        found.traceback = _COLOURS.sub("", "\n".join(content["traceback"]))
    elif kind in ("display_data", "execute_result", "update_display_data"):
        html, plain = (content["data"].get(f"text/{each}", "") for each in ("html", "plain"))
        name = content.get("transient", {}).get("display_id", "")
        found.shown.append(html)
        if kind == "update_display_data":
            found.html[places[name]] = html
            return
        places[name] = len(found.html)
        found.html.append(html)
        found.plain.append(plain)


@contextmanager
def running_kernel(home: Path) -> Generator[Kernel]:
    """A kernel in which the package of this checkout can be imported; ``home`` is an empty
    folder."""
    manager: Any = KernelManager(transport="ipc", ip=str(home / "channel"))
    manager.start_kernel(env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(home)})
    client: Any = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
