"""MkDocs hook: reference of functions, ops and the command line, from the running package.

`ptir` finds functions and ops in tables at run time and the command line is built by Typer, so that
a static reader of sources sees none of them. A page holds ``<!-- functions -->`` for those of
`gptrs.numpy_api`, ``<!-- functions: NAME -->`` for those of a namespace of its own such as
``ptir.random``, ``<!-- ops: MODULE -->`` for the ops of ``gptrs.ir.ops.MODULE``, or
``<!-- commands -->`` for the verbs of ``gptrs``; the hook puts Markdown in their place: signature,
docstring, and of ops the NumPy meaning (of composites the definition).
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import typer.main

from gptrs import ptir
from gptrs.cli.app import app
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS
from gptrs.numpy_api import ALIASES, ELSEWHERE, MODULES, NAMES


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs with the text of each page."""
    markdown = re.sub(r"<!-- ops: (\w+) -->", lambda found: ops_of(found[1]), markdown)
    markdown = markdown.replace("<!-- functions -->", functions())
    markdown = re.sub(r"<!-- functions: (\w+) -->", lambda found: namespace(found[1]), markdown)
    return markdown.replace("<!-- commands -->", commands())


def functions() -> str:
    """The functions of `gptrs.numpy_api` by module, then the names that stand for them."""
    return "\n".join([*(line for module in MODULES for line in _functions_of(module)), *_aliases()])


def _functions_of(module: str) -> Iterator[str]:
    yield from _listed(f"gptrs.numpy_api.{module}", MODULES[module], "ptir", ptir)


def namespace(name: str) -> str:
    """The functions of ``ptir.name`` by module."""
    found: Any = import_module(f"gptrs.numpy_api.{name}")
    modules = [(f"{found.__name__}.{module}", names) for module, names in found.MODULES.items()]
    return "\n".join(line for module in modules for line in _listed(*module, f"ptir.{name}", found))


def _listed(module: str, names: Sequence[str], prefix: str, home: Any) -> Iterator[str]:
    """The functions ``names`` of a module, found in ``home`` and called ``prefix.name``."""
    doc = import_module(module).__doc__ or ""
    yield f"## {' '.join(inspect.cleandoc(doc).partition(chr(10) * 2)[0].split())}\n"
    for name in sorted(names):
        function = getattr(home, name)
        yield f"### {prefix}.{name}\n"
        yield f"```python\n{prefix}.{name}{inspect.signature(function)}\n```\n"
        yield inspect.cleandoc(function.__doc__ or "") + "\n"


def _aliases() -> Iterator[str]:
    yield "## Other names\n"
    yield "| name | is |\n|---|---|"
    for name, target in sorted(ALIASES.items()):
        yield f"| `ptir.{name}` | `ptir.{target}` |"
    for space, names in ELSEWHERE.items():
        for name in names:
            yield f"| `ptir.{name}` | `ptir.{space}.{name}` |"


def ops_of(module: str) -> str:
    """The ops of ``gptrs.ir.ops.module``, in alphabetical order."""
    home = f"gptrs.ir.ops.{module}"
    found = [op for name, op in sorted(OPS.items()) if op.__module__ == home and name in dir(ptir)]
    return "\n".join(line for op in found for line in _op(op))


def _op(op: Any) -> Iterator[str]:
    composite = isinstance(op, Composite)
    place = "ptir.ops" if op.name in NAMES else "ptir"
    yield f"### {place}.{op.name}\n"
    yield f"```python\n{place}.{op.name}{inspect.signature(op)}\n```\n"
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
    return "\n".join(line for name, verb in _verbs(group, "") for line in _verb(name, verb))


def _verbs(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Each command of a group, and those of the groups in it, by what is typed for it."""
    for name, verb in group.commands.items():
        if hasattr(verb, "commands"):
            yield from _verbs(verb, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", verb


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
