"""MkDocs hook: reference of ops and of the command line, from the running package.

`ptir` finds ops in a table at run time and the command line is built by Typer, so that a static
reader of sources sees neither. A page holds ``<!-- ops: MODULE -->`` for the ops of
``gptrs.ir.ops.MODULE``, or ``<!-- commands -->`` for the verbs of ``gptrs``; the hook puts Markdown
in their place: signature, docstring, and the NumPy meaning (of composites the definition).
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import typer.main

from gptrs import ptir
from gptrs.cli.app import app
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs with the text of each page."""
    markdown = re.sub(r"<!-- ops: (\w+) -->", lambda found: ops_of(found[1]), markdown)
    return markdown.replace("<!-- commands -->", commands())


def ops_of(module: str) -> str:
    """The ops of ``gptrs.ir.ops.module``, in alphabetical order."""
    home = f"gptrs.ir.ops.{module}"
    found = [op for name, op in sorted(OPS.items()) if op.__module__ == home and name in dir(ptir)]
    return "\n".join(line for op in found for line in _op(op))


def _op(op: Any) -> Iterator[str]:
    composite = isinstance(op, Composite)
    yield f"### ptir.{op.name}\n"
    yield f"```python\nptir.{op.name}{inspect.signature(op)}\n```\n"
    yield inspect.cleandoc(op.__doc__ or "") + "\n"
    meaning: Any = op.body if composite else op.meaning
    if isinstance(meaning, np.ufunc):
        yield f"NumPy meaning: `numpy.{meaning.__name__}`.\n"
    elif inspect.isfunction(meaning) and meaning.__name__ != "<lambda>":
        yield f'??? note "{"Definition" if composite else "NumPy meaning"}"\n'
        source = textwrap.dedent(inspect.getsource(meaning))
        yield textwrap.indent(f"```python\n{source}```\n", "    ")


def commands() -> str:
    """Each verb with its arguments and options."""
    group: Any = typer.main.get_command(app)
    return "\n".join(line for name, verb in group.commands.items() for line in _verb(name, verb))


def _verb(name: str, verb: Any) -> Iterator[str]:
    yield f"## `gptrs {name}`\n"
    yield f"{_plain(verb.help)}\n"
    yield "| option | default | meaning |\n|---|---|---|"
    for option in verb.params:
        is_option = option.param_type_name == "option"
        spelled = ", ".join(option.opts) if is_option else option.name.upper()
        if is_option and option.metavar:
            spelled += f" {option.metavar}"
        default = "" if option.default in (None, False, "") else str(option.default)
        cells = f"`{spelled}`", default, option.help or ""
        yield "| " + " | ".join(_plain(cell).replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _plain(text: str) -> str:
    """One line for a cell or a paragraph."""
    return " ".join(text.split())
