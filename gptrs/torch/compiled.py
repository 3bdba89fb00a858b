"""A graph of torch, compiled: tensors in, tensors out.

Operands are read where they lie, without a copy. In inference the tensors that torch calls static
(parameters and buffers) become Parameters of the program, which kernels read packed. They are
compared at each call by address and version: after a change they are packed again, and what changes
again and again is an operand like others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch._guards import TracingContext
from torch.fx import GraphModule
from torch.fx.node import Node as GraphNode
from torch.utils.weak import WeakTensorKeyDictionary

from gptrs import ptir
from gptrs.errors import CheckError, DimError, DTypeError, MatrixError, PtirError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.jit.function import JitFunction
from gptrs.jit.modes import is_eager
from gptrs.torch.aten import UnsupportedError
from gptrs.torch.graph import Tracing, function_of, placeholders, results_of, symbols_of
from gptrs.torch.operators import Fallback
from gptrs.torch.options import GraphOptions
from gptrs.torch.tensors import Sizes, array_of, dim_of, symbols_in, tensor_of
from gptrs.torch.views import Views

_MOST_CHANGES = 2  # of a tensor that is packed; then it is no longer worth it


class GraphCall(NamedTuple):
    """A call of a compiled graph: the jitted function, and the arrays that it was given."""

    function: JitFunction[..., Any] | None
    """None where torch runs the graph."""
    arrays: Sequence[Any]
    fallbacks: tuple[Fallback, ...]


_noted: ContextVar[list[GraphCall] | None] = ContextVar("_noted", default=None)
_parameters: Any = WeakTensorKeyDictionary()
"""The Parameter of each tensor, with the version that it has: graphs share packed weights."""


@contextmanager
def noted_calls() -> Generator[list[GraphCall]]:
    """The calls of compiled graphs within."""
    calls: list[GraphCall] = []
    token = _noted.set(calls)
    try:
        yield calls
    finally:
        _noted.reset(token)


class CompiledGraph:
    """A graph that aot_autograd made, as a program."""

    def __init__(self, module: GraphModule, options: GraphOptions, *, is_inference: bool) -> None:
        self._module, self._options = module, options
        self._placeholders = placeholders(module.graph)
        self._views = Views(module, results_of(module.graph))
        self._kept = _static_places() if is_inference else ()
        self._changes: Counter[int] = Counter()
        self._versions: list[Any] = []
        self._traced: list[int] | None = None
        self._is_torchs = False
        self._is_symbolic = True
        self._functions: dict[tuple[Any, ...], JitFunction[..., Any]] = {}
        self.fallbacks: list[Fallback] = []
        """The operators that torch runs, each with the reason."""

    def boxed(self) -> Callable[[list[Any]], list[Any]]:
        """The call that aot_autograd makes: a list of operands, which it empties."""

        def call(operands: list[Any]) -> list[Any]:
            given = list(operands)
            operands.clear()
            return self(given)

        call._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return call

    def __call__(self, operands: list[Any]) -> list[Any]:
        """The results for tensors, and integers where torch has symbols."""
        versions = [_version(operands[place]) for place in self._kept]
        if versions != self._versions:
            self._take(versions, operands)
        if self._is_torchs:
            return self._run_by_torch(operands)
        if self._traced is None:
            self._traced = self._places_of_tensors(operands)
        try:
            arrays = [array_of(operands[place]) for place in self._traced]
            function = self._function(operands, arrays)
        except PtirError as error:
            return self._given_to_torch(operands, error)
        try:
            made = function(*arrays)
        except (DTypeError, UnsupportedError) as error:  # eagerly, nothing was traced before
            return self._given_to_torch(operands, error)
        except (CheckError, MatrixError) as error:
            failed: Any = torch.linalg
            raise failed.LinAlgError(str(error)) from error
        if (calls := _noted.get()) is not None:
            calls.append(GraphCall(function, arrays, tuple(self.fallbacks)))
        others = [tensor_of(x.numpy()) if isinstance(x, Tensor) else x for x in made]
        return self._views.joined(others, operands)

    def _given_to_torch(self, operands: list[Any], error: PtirError) -> list[Any]:
        """The results by torch, from now on; the error where that is not wanted."""
        if self._options.strict:
            raise error
        self.fallbacks[:] = [Fallback("the whole graph", error.problem)]
        self._is_torchs = True
        return self._run_by_torch(operands)

    def _run_by_torch(self, operands: list[Any]) -> list[Any]:
        """The graph as torch runs it: it has what PTIR has not, such as a dtype."""
        with torch.no_grad():
            made = list(self._module(*operands))
        if (calls := _noted.get()) is not None:
            calls.append(GraphCall(None, (), tuple(self.fallbacks)))
        return made

    def _take(self, versions: list[Any], operands: list[Any]) -> None:
        """Use the parameters as they are now."""
        before = self._versions or versions
        for place, old, new in zip(self._kept, before, versions, strict=True):
            self._changes[place] += old != new
        self._kept = tuple(p for p in self._kept if self._changes[p] <= _MOST_CHANGES)
        self._versions = [_version(operands[place]) for place in self._kept]
        self._traced = self._places_of_tensors(operands)
        self._functions.clear()

    def _places_of_tensors(self, operands: list[Any]) -> list[int]:
        """The places of the tensors that differ from call to call."""
        places = (p for p, operand in enumerate(operands) if isinstance(operand, torch.Tensor))
        kept = set(self._kept)
        return [place for place in places if place not in kept]

    def _function(self, operands: list[Any], arrays: list[Any]) -> JitFunction[..., Any]:
        """The jitted function for these operands, which has been traced for their kind."""
        if self._is_symbolic and not is_eager():  # in which sizes are numbers
            try:
                return self._function_at((), operands, arrays, {})
            except DimError:  # the program depends on sizes: one for each
                self._is_symbolic = False
        sizes = dict(self._sizes(operands))
        return self._function_at(tuple(sizes.items()), operands, arrays, sizes)

    def _function_at(
        self, key: tuple[Any, ...], operands: list[Any], arrays: list[Any], sizes: Sizes
    ) -> JitFunction[..., Any]:
        if (found := self._functions.get(key)) is None:
            found = self._jitted(operands, sizes)
            if not is_eager():
                found.program(*arrays)  # the errors of tracing, apart from those of running
            self._functions[key] = found
        return found

    def _sizes(self, operands: list[Any]) -> Iterator[tuple[str, int]]:
        """torch's symbols with what they are in this call."""
        for node, operand in zip(self._placeholders, operands, strict=True):
            if operand is not None:
                yield from symbols_in(node.meta["val"], operand)

    def _jitted(self, operands: list[Any], sizes: Sizes) -> JitFunction[..., Any]:
        """The graph as a function of the tensors that differ from call to call."""
        nodes = self._placeholders
        traced = [nodes[place] for place in self._traced or ()]
        known: dict[GraphNode, Any] = {}
        for place in self._kept:
            known[nodes[place]] = _parameter(operands[place], nodes[place].name)
        for node, operand in zip(nodes, operands, strict=True):
            if operand is None:  # a token of torch's, which keeps effects in order
                known[node] = None
            elif not isinstance(operand, torch.Tensor):
                known[node] = dim_of(node.meta["val"], sizes)
        tracing = Tracing(self.fallbacks, self._options.strict, sizes)
        return ptir.jit(
            function_of(self._module, traced, known, tracing, self._views),
            dynamic=symbols_of(traced) if self._is_symbolic else {},
            precise=self._options.precise,
            backend=self._options.backend,
            name=self._options.name,
        )


def _static_places() -> tuple[int, ...]:
    """The places of parameters and buffers that the graph does not write among its operands."""
    context = TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None:
        return ()
    written = {i for i, info in enumerate(metadata.input_info) if info.mutates_data}
    return tuple(i for i in metadata.static_input_indices if i not in written)


def _version(tensor: torch.Tensor) -> tuple[int, int]:
    """What changes when the elements do. Tensors of inference mode have no version: they are taken
    not to change."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version


def _parameter(tensor: torch.Tensor, name: str) -> Parameter:
    """The Parameter of a tensor as it is now."""
    version = _version(tensor)
    found = _parameters.get(tensor)
    if found is None or found[0] != version:
        found = _parameters[tensor] = version, Parameter(array_of(tensor), name)
    return found[1]
