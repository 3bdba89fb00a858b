"""Modules that ``torch.export`` took down, as functions of arrays: no torch runs in them.

    model = gptrs.from_torch(module, (x,))
    y = model(x)                      # arrays or tensors in, Tensors out
    model.save("model.gptrs", x)      # ptir.load_compiled reads it, without torch

The names of parameters are those of the module's state dict. Buffers that the module writes are
arguments and results of the program; `ExportedModel` keeps their last values.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.export import ExportedProgram, default_decompositions, export
from torch.export.graph_signature import InputKind, InputSpec, OutputKind
from torch.utils import _pytree as pytree

from gptrs import ptir
from gptrs.errors import ArgumentError, DTypeError, shown
from gptrs.ir.dims import Dim, Shape
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import Array, Type, as_dtype
from gptrs.torch.aten import TABLE
from gptrs.torch.graph import Tracing, function_of, placeholders, symbols_of
from gptrs.torch.operators import Fallback
from gptrs.torch.tensors import array_of, type_of

if TYPE_CHECKING:
    import os


def exported(
    module: torch.nn.Module,
    example_inputs: Sequence[Any],
    dynamic_shapes: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
) -> ExportedModel:
    """``module`` as it runs on ``example_inputs``; ``dynamic_shapes`` as of ``torch.export``."""
    with _exporting():
        program = export(
            module, tuple(example_inputs), dict(example_kwargs or {}), dynamic_shapes=dynamic_shapes
        )
    return ExportedModel(program)


@contextmanager
def _exporting() -> Generator[None]:
    """No gradients, and no warnings of torch about itself."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`isinstance\(treespec", FutureWarning)
        warnings.filterwarnings("ignore", r"The tensor attributes? self\._flat_weights")
        yield


def _decompositions() -> Any:
    """How torch writes operators in simpler ones, but for those of the table."""
    table = default_decompositions()
    for target in list(table):
        if str(target).removeprefix("aten.") in TABLE:
            del table[target]
    return table


class ExportedModel:
    """A module as a jitted function: call it as the module, with arrays or CPU tensors."""

    def __init__(self, program: ExportedProgram) -> None:
        whole: Any = program  # the stubs leave out what decompositions are
        with _exporting():
            lowered: ExportedProgram = whole.run_decompositions(_decompositions())
        self._spec: Any = lowered.call_spec
        signature = lowered.graph_signature
        state: dict[str, Any] = {**lowered.state_dict, **lowered.constants}
        nodes = list(zip(signature.input_specs, placeholders(lowered.graph), strict=True))
        self._outputs = signature.output_specs
        written = {spec.target for spec in self._outputs if spec.kind is OutputKind.BUFFER_MUTATION}
        self.parameters: dict[str, Parameter] = {}
        self.buffers: dict[str, Array] = {}
        """What the module writes, as it is after the last call."""
        known: dict[Any, Any] = {}
        shared: dict[Hashable, Parameter] = {}
        self._user = [node for spec, node in nodes if spec.kind is InputKind.USER_INPUT]
        traced = [node for node in self._user if isinstance(node.meta.get("val"), torch.Tensor)]
        self._places = [self._user.index(node) for node in traced]
        self._wanted = [type_of(node.meta["val"], {}) for node in traced]
        self._fixed: dict[int, Any] = {}
        """By place: the arguments that are no tensors, which the export took as they were."""
        for place, node in enumerate(self._user):
            if place not in self._places:
                self._fixed[place] = known[node] = node.meta.get("val")
        for spec, node in nodes:
            if spec.kind is InputKind.BUFFER and spec.target in written:
                self.buffers[str(spec.target)] = array_of(state[str(spec.target)]).copy()
                traced.append(node)
            elif spec.kind is not InputKind.USER_INPUT:
                known[node] = self._parameter(spec, state, shared)
        self.fallbacks: list[Fallback] = []
        """The operators that torch runs, each with the reason."""
        function = function_of(lowered.graph_module, traced, known, Tracing(self.fallbacks))
        self.function = ptir.jit(function, dynamic=symbols_of(traced), name="torch")
        """The jitted function of the arrays among the arguments, in order, then `buffers`."""

    def _parameter(
        self, spec: InputSpec, state: Mapping[str, Any], shared: dict[Hashable, Parameter]
    ) -> Tensor:
        name = spec.target or spec.arg.name
        value = state[name]
        if not isinstance(value, torch.Tensor):
            raise ArgumentError(f"{name} is a {type(value).__name__}, expected a tensor")
        array = array_of(value)
        if spec.kind is InputKind.CONSTANT_TENSOR:
            return Tensor(array)
        key = array.ctypes.data, array.shape, array.strides, array.dtype
        if key not in shared:
            shared[key] = self.parameters[name] = Parameter(array, name)
        return shared[key]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns, in its containers, with Tensors for torch's."""
        made = self.function(*self._arrays(args, kwargs))
        kept: list[Any] = []
        for value, spec in zip(made, self._outputs, strict=True):
            if spec.kind is OutputKind.BUFFER_MUTATION:
                self.buffers[str(spec.target)] = value.numpy()
            elif spec.kind is OutputKind.USER_OUTPUT:
                kept.append(value)
            else:
                raise ArgumentError(
                    f"the module writes its argument {spec.target}",
                    fix="let it return the new value instead",
                )
        return pytree.tree_unflatten(kept, self._spec.out_spec)

    def _arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        order: list[str] = self._spec.in_spec.child(1).context
        kwargs = {name: kwargs.pop(name) for name in order if name in kwargs} | kwargs
        leaves, _ = pytree.tree_flatten((args, kwargs), is_leaf=lambda x: isinstance(x, Tensor))
        if len(leaves) != len(self._user):
            raise ArgumentError(
                f"the module was exported with {len(self._user)} arguments, found {len(leaves)}",
                fix="call it with arguments as of the export, in the same containers",
            )
        for place, value in self._fixed.items():
            if type(leaves[place]) is not type(value) or leaves[place] != value:
                raise ArgumentError(
                    f"argument {place} is {shown(leaves[place])}, expected {shown(value)}",
                    fix="export the module once more for another value",
                )
        given = [_array(leaves[place]) for place in self._places]
        for place, array, wanted in zip(self._places, given, self._wanted, strict=True):
            found = Type(array.shape, as_dtype(array.dtype))
            if found.dtype is not wanted.dtype or not _fits(found.shape, wanted.shape):
                raise ArgumentError(
                    f"argument {place} is {found}, expected {wanted}",
                    fix="name the sizes that may differ in dynamic_shapes",
                )
        return [*given, *self.buffers.values()]

    def program(self, *args: Any, **kwargs: Any) -> Any:
        """The program of a call, as it was traced."""
        return self.function.program(*self._arrays(args, kwargs))

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """The plan of a call: print it."""
        return self.function.explain(*self._arrays(args, kwargs))

    def profile(self, *args: Any, **kwargs: Any) -> Any:
        """The profile of one call: print it."""
        return self.function.profile(*self._arrays(args, kwargs))

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """The program, its passes and its plan as an HTML page."""
        return self.function.view(*self._arrays(args, kwargs))

    def save(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Write the compiled function of a call's arguments, which `ptir.load_compiled` reads
        without torch: it takes the arrays among them, in order, and returns those of the
        result in a tuple."""
        lowered = self.function.lower(*self._arrays(args, kwargs))
        lowered.compile().save(Path(path))

    def __repr__(self) -> str:
        return f"<ExportedModel of {len(self._user)} arguments, {len(self.parameters)} parameters>"


def _fits(found: Shape, wanted: Shape) -> bool:
    """Whether the extents that the export fixed are those."""
    pairs = zip(found, wanted, strict=False)
    return len(found) == len(wanted) and all(isinstance(w, Dim) or f == w for f, w in pairs)


def _array(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return array_of(value)
    if isinstance(value, Tensor) or as_array(value) is not None:
        return value
    raise DTypeError(f"an argument is a {type(value).__name__}, expected an array or a tensor")
