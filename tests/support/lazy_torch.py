"""torch and what needs it, imported when an attribute is first asked for.

That takes seconds, and most tests do without.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["F", "torch", "torch_activations", "torch_op", "torchvision", "transformers"]

if TYPE_CHECKING:
    import torch as torch
    import transformers as transformers
    from torch.nn import functional as F  # noqa: N812 - its usual name

    from gptrs_bench.peers import torch_activations as torch_activations
    from tests.support import torchvision_models as torchvision
else:

    class LazyModule:
        """A module that is imported when an attribute is asked for.

        pytest asks every name of a test module for private attributes: there are none.
        """

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            if attribute.startswith("_"):
                raise AttributeError(attribute)
            return getattr(import_module(self._name), attribute)

    torch = LazyModule("torch")
    F = LazyModule("torch.nn.functional")
    transformers = LazyModule("transformers")
    torch_activations = LazyModule("gptrs_bench.peers.torch_activations")
    torchvision = LazyModule("tests.support.torchvision_models")


def torch_op(name: str) -> Callable[..., Any]:
    """The function of torch with this name, looked up when it is called."""
    return lambda *operands, **attrs: getattr(torch, name)(*operands, **attrs)
