"""Cause of the first layer that differs from torch's: input, weights, definition or backend.

The layer runs alone on torch's input, its weights are compared with those of the files, and its
program is compared with the reference backend instruction by instruction
(`gptrs.jit.numerics.first_deviation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs import ptir, tree
from gptrs.debug.numeric_diff.deviation import Deviation
from gptrs.debug.numeric_diff.difference import Difference, difference
from gptrs.ir.tensor import Tensor
from gptrs.jit.modes import backend_name
from gptrs.jit.numerics.first_deviation import first_deviation
from gptrs.lazy_dataclass import dataclass
from gptrs.nn.module import Module
from gptrs.parity.layers import Arguments, first_tensor, layer_arguments, up_to_layer
from gptrs.parity.torch_models import TorchCall, TorchModel

Array = NDArray[Any]


@dataclass(frozen=True)
class Blame:
    """The findings about a layer, or about the whole model."""

    backend: str
    taken: Difference | None
    """Of the layer's input; None without a counterpart of the same shape."""
    alone: Difference | None
    """Of the output when the layer runs alone, on the input of torch's layer."""
    weights: tuple[str, ...]
    """Its parameters that differ from those of the files."""
    deviation: Deviation | None
    """The first deviation from the reference backend, alone or within the model."""

    def lines(self) -> Iterator[str]:
        """The same in words."""
        if self.taken is not None:
            same = "agrees" if self.taken.agrees else "differs"
            yield f"what it takes {same}: max abs {self.taken.max_abs:.3g}"
        if self.alone is not None:
            same = "agrees" if self.alone.agrees else "differs"
            yield f"alone, on what torch's layer takes, it {same}: max abs {self.alone.max_abs:.3g}"
        for name in self.weights:
            yield f"its parameter {name} is not that of the files"
        if self.deviation is not None:
            yield from self.deviation.lines(self.backend)
        elif self.backend != "reference":
            yield f"{self.backend} and the reference backend give the same for it"
        yield f"to blame: {self.verdict}"

    @property
    def verdict(self) -> str:
        """The cause, in a few words."""
        if self.deviation is not None:
            name = self.deviation.name
            return f"the pass {name}" if self.deviation.kind == "pass" else f"what runs {name}"
        if self.weights:
            return "its weights"
        if self.alone is not None and not self.alone.agrees:
            return "the layer itself"
        if self.taken is not None and not self.taken.agrees:
            return "what it takes: what the model does before it, outside of any layer"
        return "what the program around it makes of it: alone it is right"


def blame_model(module: Any, inputs: Array, torch: TorchModel, within: float) -> Blame:
    """The findings where only the output of the whole model differs."""

    def run(model: Any, inputs: Tensor) -> Tensor | None:
        return first_tensor(model(inputs))

    deviation = _deviation(run, (module, ptir.tensor(inputs)), within)
    return Blame(backend_name(), None, None, _changed(module, "", torch), deviation)


def blame_layer(
    module: Module, name: str, inputs: Array, torch: TorchModel, call: TorchCall, within: float
) -> Blame:
    """The findings about the layer ``name``, the first that differs. ``call`` is the call of
    torch's layer."""

    def run(layer: Any, taken: Arguments) -> Tensor | None:
        args, kwargs = taken
        return first_tensor(layer(*args, **kwargs))

    place = name.partition(":")[0]
    layer, taken = module.modules()[place], layer_arguments(module, inputs, name)
    deviation = _deviation(run, (layer, taken), within)
    first = first_tensor(taken)
    apart = alone = None
    if first is not None and call.taken is not None and first.shape == call.taken.shape:
        apart = difference(first.numpy(), call.taken, within)
        given = ptir.jit(run)(layer, _replaced(taken, first, ptir.tensor(call.taken)))
        if given is not None and given.shape == call.given.shape:
            alone = difference(given.numpy(), call.given, within)
    weights = _changed(layer, place, torch)
    is_right = alone is None or alone.agrees
    if (
        deviation is None and not weights and is_right
    ):  # then its fusion with neighbours is the suspect
        around, model = up_to_layer(module, name)
        deviation = _deviation(around, (model, ptir.tensor(inputs)), within)
    return Blame(backend_name(), apart, alone, weights, deviation)


def _deviation(function: Any, arguments: tuple[Any, ...], within: float) -> Deviation | None:
    return first_deviation(ptir.jit(function, name="layer").traced_call(*arguments), within)


def _replaced(taken: Arguments, old: Tensor, new: Tensor) -> Any:
    """``taken`` with ``new`` in the place of ``old``."""
    leaves, structure = tree.flatten(taken, is_leaf=lambda part: isinstance(part, Tensor))
    return tree.unflatten(structure, [new if leaf is old else leaf for leaf in leaves])


def _changed(layer: Module, name: str, torch: TorchModel) -> tuple[str, ...]:
    """The parameters of ``layer``, called ``name``, that differ from those of torch's model."""
    expected = torch.weights(name)
    own = {f"{name}.{part}".lstrip("."): value for part, value in layer.parameters().items()}
    return tuple(
        place
        for place, parameter in own.items()
        if place in expected
        and not np.array_equal(
            parameter.numpy().astype(np.float32), expected[place], equal_nan=True
        )
    )
