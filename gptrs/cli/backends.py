"""``gptrs backends``: the backends of this machine, their devices, and the one to take."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def backends(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the backends: whether each is available, its devices with their memory, or the reason
    why it is not; and the one that --backend auto takes.

    gptrs backends
    """
    from gptrs.backends.summary import backend_report, print_backend_summary

    if as_json:
        typer.echo(json.dumps(backend_report(), ensure_ascii=False))
    else:
        print_backend_summary()
