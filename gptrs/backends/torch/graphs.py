"""CUDA graphs: calls with the same sizes and weights replay the kernels of one of them.

The first call with a key runs as usual, the second is captured, later ones are replayed: arguments
are copied into the memory that the graph reads, donated ones (a KV cache) and weights are read and
written where they are, and other results are copied out. Checks are read after the replay, so a
call that fails may have overwritten its donated arguments.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import torch

from gptrs.backends.torch.run import CheckFailed, Run
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import new_lock

Tensors: TypeAlias = Sequence[torch.Tensor | None]
Function: TypeAlias = Callable[..., tuple[torch.Tensor, ...]]
_MOST_GRAPHS = 8  # of a plan; each holds the memory of its intermediate values


class CapturedRun(Run):
    """A run whose checks become one value, read after each replay."""

    __slots__ = ()

    def settle(self) -> None:
        """Nothing: a capture cannot wait for the device."""

    def failed(self) -> torch.Tensor | None:
        """Whether any check holds, on the device."""
        return torch.stack(self._checks).any() if self._checks else None


@dataclass(frozen=True)
class _Captured:
    graph: Any
    inputs: Tensors
    """The memory that the graph reads, in the places of arguments that are copied."""
    results: tuple[torch.Tensor, ...]
    failed: torch.Tensor | None


class Graphs:
    """The graphs of a plan."""

    def __init__(self, function: Function, stays: Sequence[bool]) -> None:
        self._function = function
        self._stays = stays
        """Of each argument, whether the graph uses it where it is: weights, donated arguments."""
        self._seen: set[Hashable] = set()
        self._captured: dict[Hashable, _Captured] = {}
        self._lock = new_lock()

    def run(self, run: Run, tensors: Tensors) -> tuple[torch.Tensor, ...]:
        """The results of the function. Raises `CheckFailed` as the run of it does."""
        key = self._key(run, tensors)
        with self._lock:  # the memory of a graph serves one call at a time
            if key not in self._seen:
                self._seen.add(key)
                return self._function(run, *tensors)
            found = self._captured.get(key)
            if found is None:
                while len(self._captured) >= _MOST_GRAPHS:
                    del self._captured[next(iter(self._captured))]
                found = self._captured[key] = self._capture(run, tensors)
            return self._replay(found, tensors)

    def _key(self, run: Run, tensors: Tensors) -> Hashable:
        places = tuple(
            t.data_ptr() if t is not None and stays else None
            for t, stays in zip(tensors, self._stays, strict=True)
        )
        shapes = tuple(None if t is None else (t.shape, t.stride()) for t in tensors)
        return tuple(run.sizes.items()), places, shapes

    def _capture(self, run: Run, tensors: Tensors) -> _Captured:
        inputs = [
            t if t is None or stays else t.clone()
            for t, stays in zip(tensors, self._stays, strict=True)
        ]
        captured = CapturedRun(run.device, run.sizes, run.constants)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = self._function(captured, *inputs)
            failed = captured.failed()
        return _Captured(graph, inputs, results, failed)

    def _replay(self, found: _Captured, tensors: Tensors) -> tuple[torch.Tensor, ...]:
        for target, given, stays in zip(found.inputs, tensors, self._stays, strict=True):
            if target is not None and given is not None and not stays:
                target.copy_(given)
        found.graph.replay()
        if found.failed is not None and bool(found.failed):
            raise CheckFailed
        own = {
            t.untyped_storage().data_ptr()
            for t, stays in zip(tensors, self._stays, strict=True)
            if t is not None and stays
        }
        return tuple(
            [r if r.untyped_storage().data_ptr() in own else r.clone() for r in found.results]
        )
