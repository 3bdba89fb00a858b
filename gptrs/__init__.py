"""gptrs: a CPU tensor JIT for Python.

    from gptrs import ptir

    @ptir.jit
    def f(x, w):
        return ptir.softmax(x @ w)

Names load when they are first asked for, so that ``import gptrs`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gptrs import models as models
    from gptrs import nn as nn
    from gptrs import ptir as ptir
    from gptrs.backends.parameter_cache import parameter_cache as parameter_cache
    from gptrs.errors import PtirError as PtirError
    from gptrs.ir.tensor import Parameter as Parameter
    from gptrs.ir.tensor import Tensor as Tensor
    from gptrs.loading.estimate import estimate_memory as estimate_memory
    from gptrs.loading.export import export as export
    from gptrs.loading.from_torch import from_torch as from_torch
    from gptrs.loading.load import load as load

__version__ = "0.1.0"

_HOMES = {
    "ptir": ("gptrs.ptir", None),
    "nn": ("gptrs.nn", None),
    "models": ("gptrs.models", None),
    "load": ("gptrs.loading.load", "load"),
    "from_torch": ("gptrs.loading.from_torch", "from_torch"),
    "export": ("gptrs.loading.export", "export"),
    "estimate_memory": ("gptrs.loading.estimate", "estimate_memory"),
    "parameter_cache": ("gptrs.backends.parameter_cache", "parameter_cache"),
    "Tensor": ("gptrs.ir.tensor", "Tensor"),
    "Parameter": ("gptrs.ir.tensor", "Parameter"),
    "PtirError": ("gptrs.errors", "PtirError"),
}
__all__ = [
    "Parameter",
    "PtirError",
    "Tensor",
    "__version__",
    "estimate_memory",
    "export",
    "from_torch",
    "load",
    "models",
    "nn",
    "parameter_cache",
    "ptir",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'gptrs' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    home = import_module(module)
    value: object = home if attribute is None else getattr(home, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
