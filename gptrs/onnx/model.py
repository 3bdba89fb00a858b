"""``gptrs.load("model.onnx")``: models of ONNX as functions of arrays.

    model = gptrs.load("model.onnx")
    y = model(x)                   # by place, or by the names of the file: model(input=x)

Sizes that the file names (``batch``) are symbols: one program serves all of them, unless something
in the model needs their numbers. Arguments that shapes depend on (the target of a ``Reshape``) are
read, and each value of theirs has a program of its own.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, ValueInfoProto

from gptrs import ptir
from gptrs.errors import ArgumentError, DimError, LoadError, ShapeError
from gptrs.ir.dims import Dim
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import Array, DType, as_dtype
from gptrs.locks import new_lock
from gptrs.onnx.constants import MOST_FOLDED
from gptrs.onnx.definitions import unsupported_operators
from gptrs.onnx.graph import fold_constants, run_graph
from gptrs.onnx.table import UnsupportedOperatorError
from gptrs.onnx.tensors import dtype_of
from gptrs.onnx.values import Scope, Value, ValueNeededError, as_tensor

_MOST_PROGRAMS = 32
"""Of different values of arguments that shapes depend on."""


def load_onnx(path: Path) -> OnnxModel:
    """The model in ``path``. Raises `LoadError` naming the file."""
    if not path.is_file():
        raise LoadError(f"there is no file {path}")
    try:
        model: ModelProto = onnx.load(path)
    except (DecodeError, onnx.checker.ValidationError, OSError, ValueError) as error:
        raise LoadError(f"{path} is no ONNX model: {str(error).partition(chr(10))[0]}") from None
    if not model.graph.node and not model.graph.output:
        raise LoadError(f"{path} has no graph")
    try:
        return OnnxModel(model)
    except UnsupportedOperatorError as error:
        raise LoadError(f"{path}: {error.problem}") from error


class OnnxModel:
    """A model as a jitted function: call it with arrays, by place or by name."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self.parameters: dict[str, Parameter] = {}
        self._opsets = {o.domain: o.version for o in model.opset_import}
        self._defined = {(f.domain, f.name): f for f in model.functions}
        scope = Scope(self._opsets, self._defined, {})
        if unknown := unsupported_operators(model.graph, scope):
            raise UnsupportedOperatorError(
                f"there is no {', '.join(unknown)} in the table of operators"
            )
        self._nodes = fold_constants(model.graph, scope)
        self._weights = self._weights_in(scope)
        self.inputs: dict[str, str] = {}
        """The arguments by name, each with its type."""
        self._wanted: dict[str, tuple[DType, list[int | str]]] = {}
        initialized = {tensor.name for tensor in model.graph.initializer}
        for value in model.graph.input:
            if value.name not in initialized:
                self._wanted[value.name] = wanted = _type_of(value)
                extents = ",".join(str(n) if n != "" else "?" for n in wanted[1])
                self.inputs[value.name] = f"{wanted[0]}[{extents}]"
        self.outputs = [value.name for value in model.graph.output]
        self._needed: frozenset[str] = frozenset()
        self._is_symbolic = True
        self._functions: OrderedDict[Any, Any] = OrderedDict()
        self._lock = new_lock()

    def _weights_in(self, scope: Scope) -> dict[str, Value]:
        """The known values that nodes and results use; large ones and floats as parameters."""
        used = {name for node in self._nodes for name in node.input}
        used |= {result.name for result in self._model.graph.output}
        has_bodies = any(a.HasField("g") for node in self._nodes for a in node.attribute)
        made: dict[str, Value] = {}
        for name, value in scope.values.items():
            if name not in used and not has_bodies:
                continue
            array: Array = value.content
            if array.size <= MOST_FOLDED and (array.dtype.kind in "iub" or not array.ndim):
                made[name] = value
            else:
                self.parameters[name] = Parameter(array, name)
                made[name] = Value(self.parameters[name])
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results: one Tensor, or a tuple of them in the order of `outputs`."""
        made = self._run(lambda function, operands: function(*operands), args, kwargs)
        return made[0] if len(made) == 1 else made

    def _run(
        self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """``call`` of the jitted function and its operands: of symbolic sizes, unless something in
        the model needs their numbers."""
        given = self._bound(args, kwargs)
        if self._is_symbolic:
            try:
                return self._traced(call, given, is_symbolic=True)
            except (DimError, ShapeError, UnsupportedOperatorError):
                pass  # for these reasons, or because the arguments do not fit
        made = self._traced(call, given, is_symbolic=False)
        self._is_symbolic = False
        return made

    def _traced(
        self, call: Callable[..., Any], given: Mapping[str, Any], *, is_symbolic: bool
    ) -> Any:
        """``call`` of a jitted function, traced until all it needs is known."""
        while True:
            known = {name: np.asarray(given[name]) for name in self._needed}
            function = self._function(known, is_symbolic=is_symbolic)
            try:
                return call(function, [v for n, v in given.items() if n not in known])
            except ValueNeededError as error:
                self._needed |= error.names

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        names = list(self._wanted)
        if len(args) > len(names) or not kwargs.keys() <= set(names[len(args) :]):
            raise ArgumentError(
                f"found {len(args)} arguments and {sorted(kwargs)}",
                fix=f"the model takes {', '.join(f'{n}: {t}' for n, t in self.inputs.items())}",
            )
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if missing := [n for n in names if n not in given]:
            raise ArgumentError(
                f"the arguments {', '.join(missing)} are missing",
                fix=f"the model takes {', '.join(f'{n}: {t}' for n, t in self.inputs.items())}",
            )
        found = {name: self._checked(name, given[name]) for name in names}
        sizes: dict[str, int] = {}
        for name, array in found.items():
            for extent, wanted in zip(array.shape, self._wanted[name][1], strict=False):
                if (
                    wanted
                    and isinstance(wanted, str)
                    and sizes.setdefault(wanted, extent) != extent
                ):
                    raise ArgumentError(
                        f"{name} has {wanted} = {extent}, and another argument {sizes[wanted]}",
                        fix="give arrays that agree in it",
                    )
        return found

    def _checked(self, name: str, value: Any) -> Any:
        dtype, shape = self._wanted[name]
        array = value if isinstance(value, Tensor) else as_array(value)
        if array is None:
            array = np.asarray(value, dtype.numpy)
        found = as_dtype(array.dtype)
        fits = len(array.shape) == len(shape) and all(
            isinstance(w, str) or w == n for n, w in zip(array.shape, shape, strict=True)
        )
        if found is not dtype or not (fits or not shape):
            extents = ",".join(map(str, array.shape))
            raise ArgumentError(
                f"{name} is {found}[{extents}], expected {self.inputs[name]}",
                fix="give an array of that type",
            )
        return array

    def _function(self, known: Mapping[str, Array], *, is_symbolic: bool) -> Any:
        """The jitted function for these values of the arguments that have to be known."""
        values = tuple((n, a.dtype.str, a.shape, a.tobytes()) for n, a in known.items())
        key = is_symbolic, values
        with self._lock:
            found = self._functions.pop(key, None)
            if found is None:
                found = self._jitted(known, is_symbolic=is_symbolic)
            self._functions[key] = found
            if len(self._functions) > _MOST_PROGRAMS:
                self._functions.popitem(last=False)
            return found

    def _jitted(self, known: Mapping[str, Array], *, is_symbolic: bool) -> Any:
        names = [name for name in self._wanted if name not in known]

        def program(*operands: Tensor) -> tuple[Tensor, ...]:
            values = dict(self._weights)
            values |= {name: Value(array) for name, array in known.items()}
            for name, operand in zip(names, operands, strict=True):
                values[name] = Value(operand, frozenset((name,)))
            scope = Scope(self._opsets, self._defined, values)
            results = run_graph(self._model.graph, scope, self._nodes)
            return tuple(as_tensor(value.content) for value in results)

        name = self._model.graph.name if self._model.graph.name.isidentifier() else "onnx"
        symbols = self._symbols(names) if is_symbolic else {}
        return ptir.jit(program, dynamic=symbols, name=name)

    def _symbols(self, names: list[str]) -> dict[str, dict[int, Dim]]:
        """The sizes that the file names, as symbols."""
        found: dict[str, dict[int, Any]] = {}
        for number, name in enumerate(names):
            shape = self._wanted[name][1]
            axes = {
                axis: extent
                for axis, extent in enumerate(shape)
                if isinstance(extent, str) and extent.isidentifier()
            }
            if axes:
                found[f"operands[{number}]"] = axes
        return found

    def program(self, *args: Any, **kwargs: Any) -> Any:
        """The program of a call, as it was traced."""
        return self._run(lambda f, operands: f.program(*operands), args, kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """The plan of a call: print it."""
        return self._run(lambda f, operands: f.explain(*operands), args, kwargs)

    def profile(self, *args: Any, **kwargs: Any) -> Any:
        """The profile of one call: print it."""
        return self._run(lambda f, operands: f.profile(*operands), args, kwargs)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """The program, its passes and its plan as an HTML page."""
        return self._run(lambda f, operands: f.view(*operands), args, kwargs)

    def save(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Write the compiled function of a call's arguments, which `ptir.load_compiled` reads
        without onnx; it takes those whose values the program does not need, in order."""

        def write(function: Any, operands: list[Any]) -> None:
            function.lower(*operands).compile().save(Path(path))

        self._run(write, args, kwargs)

    def __repr__(self) -> str:
        taken = ", ".join(f"{name}: {type}" for name, type in self.inputs.items())
        return f"<OnnxModel ({taken}) → {', '.join(self.outputs)}>"


def _type_of(value: ValueInfoProto) -> tuple[DType, list[int | str]]:
    """The dtype, and the sizes: numbers, names, or "" for what is not said."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise UnsupportedOperatorError(f"the argument {value.name} is a {kind}")
    tensor = value.type.tensor_type
    shape: list[int | str] = [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in tensor.shape.dim
    ]
    return dtype_of(tensor.elem_type), shape
