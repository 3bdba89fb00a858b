"""Layer-by-layer comparison with transformers' model: ``gptrs trace``.

Runs both models on one random input, compares each layer's output in order, and diagnoses the first
difference (`gptrs.parity.blame`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from gptrs.debug.numeric_diff.difference import Difference, difference
from gptrs.formats.overrides import read_overrides
from gptrs.jit.overrides import checkpoint_overrides
from gptrs.lazy_dataclass import dataclass
from gptrs.loading.image_classifier import ImageClassifier
from gptrs.loading.language_model import LanguageModel
from gptrs.parity.blame import Blame, blame_layer, blame_model
from gptrs.parity.inputs import random_images, random_tokens
from gptrs.parity.layers import call_name, layer_outputs
from gptrs.parity.tolerance import tolerance
from gptrs.parity.torch_models import TorchCall, TorchModel

Array = NDArray[Any]
LOGITS = "logits"
"""The name of the last row: the output of the uninstrumented model."""
_TOKENS = 16


@dataclass(frozen=True)
class Row:
    """The output of one layer, here and in torch's model. ``kind`` is its class."""

    layer: str
    kind: str
    found: Array
    expected: Array
    difference: Difference | None
    """None where the shapes differ."""

    @property
    def agrees(self) -> bool:
        """Whether shape and elements agree."""
        return self.difference is not None and self.difference.agrees


@dataclass(frozen=True)
class Trace:
    """All layers in the order in which their calls end; the last row is the whole model."""

    torch_name: str
    """The class name of transformers' model."""
    rows: tuple[Row, ...]
    left_out: tuple[str, ...]
    """The layers that torch's model does not have."""
    first: Row | None
    """The first row that differs."""
    blame: Blame | None
    """The findings about it."""


def trace_layers(handle: LanguageModel | ImageClassifier) -> Trace:
    """Compare the output of each layer of a loaded model with that of transformers' model of the
    same files, on one text of 16 tokens or one image, and diagnose the first difference.

    All outputs come from one run, whose program returns them; where these agree and the logits of
    the uninstrumented model do not, each comes from a run of its own. Raises as `TorchModel` does.
    """
    with checkpoint_overrides(read_overrides(handle.files.runtime, handle.files.config_file)):
        return _Tracer(handle).trace()


class _Tracer:
    def __init__(self, handle: LanguageModel | ImageClassifier) -> None:
        self._handle = handle
        self._module = handle.module
        self._layers = handle.module.modules()
        self._torch = TorchModel(handle)
        if isinstance(handle, LanguageModel):
            count = min(_TOKENS, handle.module.context_length)
            self._inputs: Array = random_tokens(handle, 1, count)
            self._within = tolerance("causal_lm")
        else:
            self._inputs = random_images(handle, 1)
            self._within = tolerance("image_classifier")

    def trace(self) -> Trace:
        expected = self._torch.layers(self._inputs, self._layers)
        calls = {
            call_name(name, number): call
            for name, made in expected.items()
            for number, call in enumerate(made, 1)
        }
        rows = [*self._rows(calls, calls), self._logits()]
        first = next((number for number, row in enumerate(rows) if not row.agrees), None)
        if first is not None and rows[first].layer == LOGITS:
            for number, row in enumerate(rows[:-1]):
                (alone,) = self._rows(calls, {row.layer: calls[row.layer]})
                if not alone.agrees:
                    rows[number], first = alone, number
                    break
        left_out = tuple(name for name in self._layers if name and name not in expected)
        found = None if first is None else rows[first]
        blame = None if found is None else self._blame(found, calls)
        return Trace(self._torch.name, tuple(rows), left_out, found, blame)

    def _rows(
        self, calls: Mapping[str, TorchCall], wanted: Mapping[str, TorchCall]
    ) -> Iterator[Row]:
        for name, found in layer_outputs(self._module, self._inputs, wanted).items():
            kind = type(self._layers[name.partition(":")[0]]).__name__
            yield self._row(name, kind, found, calls[name].given)

    def _logits(self) -> Row:
        found = self._handle.forward(self._inputs).numpy()
        return self._row(
            LOGITS, type(self._module).__name__, found, self._torch.logits(self._inputs)
        )

    def _row(self, name: str, kind: str, found: Array, expected: Array) -> Row:
        same = found.shape == expected.shape
        apart = difference(found, expected, self._within) if same else None
        return Row(name, kind, found, expected, apart)

    def _blame(self, row: Row, calls: Mapping[str, TorchCall]) -> Blame:
        if row.layer == LOGITS:
            return blame_model(self._module, self._inputs, self._torch, self._within)
        call = calls[row.layer]
        return blame_layer(self._module, row.layer, self._inputs, self._torch, call, self._within)
