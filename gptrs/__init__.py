"""gptrs: a CPU tensor JIT for Python.

    from gptrs import ptir

    @ptir.jit
    def f(x, w):
        return ptir.softmax(x @ w)

A traced Python function becomes a program (PTIR), passes rewrite the program, a backend turns it
into a plan of native kernels, the plan runs. Imports point one way, down this table; the modules of
the package itself come first.

| module | contents |
|---|---|
| `settings` | the GPTRS_* environment variables |
| `environment_variables` | how a setting is declared, read and checked |
| `cell_names` | names of IPython's cells |
| `errors` | exceptions and warnings; user frames of tracebacks |
| `events` | event bus: passes, plans and loaders emit, debug and cli listen |
| `tree` | pytrees: flattening and unflattening of containers |
| `params` | parameter ids, and sources that parameters are read from |
| `locks` | locks and initialisation that are safe under fork |
| `collector` | Python's garbage collector, held off during imports and traces |
| `large_pages` | anonymous memory in huge pages, lent in pieces |
| `identity_key` | keys of many objects by identity |
| `byte_sizes` | "500MB" ↔ bytes |
| `html_tables` | HTML of results for notebooks |
| `extras` | optional dependencies, and the error where an import lacks one |
| `entry_points` | entry points of installed packages (models, backends) |
| `isolated` | subprocesses with this process's import path and no current directory |
| `deprecated` | aliases of renamed names, with a warning |
| `ir/` | what a program is: types, values, ops, dispatch, printing |
| `passes/` | program → program: the pass pipeline and the rewrite rules |
| `kernels/` | native kernels, the compiler that makes them, the driver that runs them |
| `backends/` | program → plan: the protocol, discovery, faer, the reference backend |
| `debug/` | explain, dumps, diffs, pass views, fuel |
| `jit/` | ``ptir.jit``: trace, cache, lower, run; its fast path |
| `ptir` | the public namespace of ops, dtypes, and ``jit`` |
| `nn/` | `Module` and layers |
| `onnx/` | models of ONNX as programs |
| `torch/` | torch's modules as programs: a backend of ``torch.compile``, ``torch.export`` |
| `models/` | GPT-2, ResNet, MobileNetV2; the registry of models |
| `text/` | tokenizer, sampling, generation |
| `images/` | image decoding and preprocessing |
| `formats/` | readers and writers of model files |
| `memory/` | memory estimates |
| `loading/` | ``gptrs.load``, ``export``, ``from_torch``, conversion |
| `parity/` | comparison of a model with transformers' model |
| `notebook/` | tracebacks, magics and progress in IPython |
| `cli/` | the ``gptrs`` command |

Public names are imported on first access (PEP 562), so that ``import gptrs`` costs next to nothing.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gptrs import models as models
    from gptrs import nn as nn
    from gptrs import ptir as ptir
    from gptrs.backends.parameter_cache import parameter_cache as parameter_cache
    from gptrs.backends.selection import best_available_backend as best_available_backend
    from gptrs.backends.selection import discover_backends as discover_backends
    from gptrs.backends.selection import init_backend as init_backend
    from gptrs.backends.selection import (
        init_backend_with_memory_check as init_backend_with_memory_check,
    )
    from gptrs.backends.summary import print_backend_summary as print_backend_summary
    from gptrs.debug.profile.recorder import profile as profile
    from gptrs.errors import PtirError as PtirError
    from gptrs.ir.parameter import Parameter as Parameter
    from gptrs.ir.tensor import Tensor as Tensor
    from gptrs.loading.c_export import export_c as export_c
    from gptrs.loading.estimate import estimate_inference_memory as estimate_inference_memory
    from gptrs.loading.estimate import estimate_memory as estimate_memory
    from gptrs.loading.export import export as export
    from gptrs.loading.from_torch import from_torch as from_torch
    from gptrs.loading.load import load as load
    from gptrs.notebook.progress import progress as progress

__version__ = "0.1.0"

_MODULES = {
    "ptir": ("gptrs.ptir", None),
    "nn": ("gptrs.nn", None),
    "models": ("gptrs.models", None),
    "load": ("gptrs.loading.load", "load"),
    "from_torch": ("gptrs.loading.from_torch", "from_torch"),
    "export": ("gptrs.loading.export", "export"),
    "export_c": ("gptrs.loading.c_export", "export_c"),
    "best_available_backend": ("gptrs.backends.selection", "best_available_backend"),
    "discover_backends": ("gptrs.backends.selection", "discover_backends"),
    "init_backend": ("gptrs.backends.selection", "init_backend"),
    "init_backend_with_memory_check": (
        "gptrs.backends.selection",
        "init_backend_with_memory_check",
    ),
    "print_backend_summary": ("gptrs.backends.summary", "print_backend_summary"),
    "estimate_inference_memory": ("gptrs.loading.estimate", "estimate_inference_memory"),
    "estimate_memory": ("gptrs.loading.estimate", "estimate_memory"),
    "profile": ("gptrs.debug.profile.recorder", "profile"),
    "progress": ("gptrs.notebook.progress", "progress"),
    "parameter_cache": ("gptrs.backends.parameter_cache", "parameter_cache"),
    "Tensor": ("gptrs.ir.tensor", "Tensor"),
    "Parameter": ("gptrs.ir.parameter", "Parameter"),
    "PtirError": ("gptrs.errors", "PtirError"),
}
__all__ = [
    "Parameter",
    "PtirError",
    "Tensor",
    "__version__",
    "best_available_backend",
    "discover_backends",
    "estimate_inference_memory",
    "estimate_memory",
    "export",
    "export_c",
    "from_torch",
    "init_backend",
    "init_backend_with_memory_check",
    "load",
    "models",
    "nn",
    "parameter_cache",
    "print_backend_summary",
    "profile",
    "progress",
    "ptir",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'gptrs' has no attribute {name!r}")
    module, attribute = _MODULES[name]
    from gptrs.collector import rare_collections
    from gptrs.locks import late_import

    with rare_collections():
        imported = late_import(module)
    value: object = imported if attribute is None else getattr(imported, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


def load_ipython_extension(shell: object) -> None:
    """``%load_ext gptrs``: the magics ``%%ptir``, ``%gptrs_profile`` and ``%gptrs_view``."""
    from gptrs.notebook.extension import load

    load(shell)


if "IPython" in sys.modules:  # it may be there and not run
    from gptrs.cell_names import running_shell

    if (_shell := running_shell()) is not None:
        from gptrs.notebook.extension import attach

        attach(_shell)
