"""Python subprocesses with the import path of this process, without the current directory.

`python -c` and `python -m` search the current directory before the standard library: a ``json.py``
in a folder of somebody else's files would be run. Used for compile processes and for the processes
of `gptrs bench`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# This package is loaded from its own location: its folder need not be on the path handed over.
_BEGIN = """
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
sys.path[:] = {path}
spec = PathFinder.find_spec({package}, [{root}])
sys.modules[{package}] = module_from_spec(spec)
spec.loader.exec_module(sys.modules[{package}])
"""
_MODULE = "import runpy\nrunpy.run_module({name}, run_name='__main__', alter_sys=True)\n"


def start_python(
    *arguments: str, env: Mapping[str, str] | None = None, **streams: Any
) -> subprocess.Popen[Any]:
    """Start Python with ``arguments``: ``-c`` and code or ``-m`` and a module, and their arguments.

    It has the absolute entries of ``sys.path`` of this process, but none that is relative: those
    mean the current directory. ``streams`` are options of `subprocess.Popen`. Raises `OSError`.
    """
    how, what, *given = arguments
    begin = _BEGIN.format(
        path=ascii([p for p in sys.path if isinstance(p, str) and os.path.isabs(p)]),
        package=ascii(__package__),
        root=ascii(str(Path(__file__).parents[1])),
    )
    code = begin + (what if how == "-c" else _MODULE.format(name=ascii(what)))
    flags = [*(["-E"] * sys.flags.ignore_environment), *(["-s"] * sys.flags.no_user_site)]
    command = [sys.executable, "-P", *flags, "-c", code, *given]
    # PYTHONPATH is part of `sys.path`; its relative entries would mean another directory by now.
    kept = {n: v for n, v in (os.environ if env is None else env).items() if n != "PYTHONPATH"}
    return subprocess.Popen(command, env=kept, **streams)
