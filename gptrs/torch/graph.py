"""A graph of ATen operators as a function of Tensors, which `ptir.jit` traces."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Graph, GraphModule
from torch.fx.node import Node as GraphNode
from torch.fx.node import map_arg

from gptrs.errors import DimError, PtirError
from gptrs.ir.dims import Dim
from gptrs.ir.tensor import Tensor
from gptrs.lazy_dataclass import dataclass
from gptrs.torch.aten import UnsupportedError
from gptrs.torch.operators import Fallback, Node, apply_operator
from gptrs.torch.size_arithmetic import check_results, compute
from gptrs.torch.tensors import Sizes, array_of, dim_of, type_of
from gptrs.torch.views import Views, is_view

_NOTHING = frozenset(
    (
        "_assert_tensor_metadata.default",
        "_assert_scalar.default",
        "_assert_async.msg",
        "sym_constrain_range.default",
        "sym_constrain_range_for_size.default",
    )
)
"""Operators that compute nothing: torch has seen to what they assert when it made the graph."""
_OF_STORAGE = frozenset(("as_strided.default", "as_strided_copy.default"))
"""Operators that see the memory of an operand, which arrays have in the order of elements."""
_torch: Any = torch
_with_effects: Any = _torch.ops.higher_order.with_effects


@dataclass(frozen=True)
class Tracing:
    """What a trace of a graph goes by, and what it finds."""

    fallbacks: list[Fallback]
    """The operators that torch runs, each with the reason: filled by the trace."""
    is_strict: bool = False
    """Whether such an operator is an error."""
    sizes: Sizes = field(default_factory=dict[str, int])
    """Numbers in place of torch's symbols; the others stay symbols."""


def placeholders(graph: Graph) -> list[GraphNode]:
    """The nodes of the operands, in order."""
    return [node for node in graph.nodes if node.op == "placeholder"]


def results_of(graph: Graph) -> list[Any]:
    """The nodes of the results, and what is no node among them."""
    (last,) = (node for node in graph.nodes if node.op == "output")
    given: Any = last.args[0]
    return [*given] if type(given) in (list, tuple) else [given]


def interpret(
    module: GraphModule,
    operands: Mapping[GraphNode, Any],
    tracing: Tracing,
) -> list[Any]:
    """The results of a graph for Tensors and sizes in place of its placeholders."""
    values: dict[GraphNode, Any] = dict(operands)
    for node in module.graph.nodes:
        if node.op == "get_attr":
            values[node] = _attribute(module, str(node.target))
        elif node.op == "call_function":
            values[node] = _call(node, values, tracing)
        elif node.op == "output":
            nodes = results_of(module.graph)
            results = [values[r] if isinstance(r, GraphNode) else r for r in nodes]
            check_results(results, [_fake(r) if isinstance(r, GraphNode) else r for r in nodes])
            return results
    raise PtirError("the graph has no output")


def _attribute(module: GraphModule, path: str) -> Any:
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name)
    return Tensor(array_of(value).copy()) if isinstance(value, torch.Tensor) else value


def _call(node: GraphNode, values: Mapping[GraphNode, Any], tracing: Tracing) -> Any:
    def value_of(each: GraphNode) -> Any:
        return values[each]

    target: Any = node.target
    args: tuple[Any, ...] = map_arg(node.args, value_of)  # pyright: ignore[reportAssignmentType]
    kwargs: dict[str, Any] = map_arg(node.kwargs, value_of)  # pyright: ignore[reportAssignmentType]
    if target is operator.getitem:
        return args[0][args[1]]
    if not isinstance(target, OpOverload | HigherOrderOperator):  # arithmetic of sizes
        try:
            return compute(target, args, kwargs)
        except DimError:
            if isinstance(fake := _fake(node), torch.SymInt):
                return dim_of(fake, tracing.sizes)
            raise
    fake_args: Any = map_arg(node.args, _fake)
    fake_kwargs: Any = map_arg(node.kwargs, _fake)
    wanted = _described(node.meta.get("val"), tracing.sizes)
    checked = _checked_by(node)
    if checked is not None and values[checked] is None:  # the operator has checked by itself
        return (None,)
    if target is _with_effects:  # a token of torch's, an operator with an effect, its operands
        inner = Node(args[1], args[2:], kwargs, fake_args[2:], fake_kwargs, wanted[1:])
        return (None, *(apply_operator(inner, tracing.fallbacks, strict=tracing.is_strict) or ()))
    reads = _reads(node)
    if reads is not None and _is_checked(node) and len(wanted) - 1 not in reads:
        checks = {"check_errors": True}
        kwargs, fake_kwargs = {**kwargs, **checks}, {**fake_kwargs, **checks}
    called = Node(target, tuple(args), kwargs, fake_args, fake_kwargs, wanted, reads)
    if called.name in _NOTHING:
        return None
    if called.name in _OF_STORAGE and not _reads_its_own(node):
        raise UnsupportedError(
            f"{called.name} of memory that has other elements, or another order of them"
        )
    return apply_operator(called, tracing.fallbacks, strict=tracing.is_strict)


def _reads(node: GraphNode) -> frozenset[int] | None:
    """Which of several results other nodes read, if not to check them for errors; None where that
    is not known."""
    items = [user for user in node.users if user.target is operator.getitem]
    if not items or len(items) < len(node.users):
        return None
    read = (item for item in items if not all(map(_checked_by, item.users)))
    return frozenset(cast("int", item.args[1]) for item in read)


def _is_checked(node: GraphNode) -> bool:
    """Whether a result, the last of an operator of linear algebra, says which matrix has none."""
    return any(_checked_by(user) for item in node.users for user in item.users)


def _checked_by(node: GraphNode) -> GraphNode | None:
    """What a node raises errors of matrices for; None where it does something else."""
    check, (first, *rest) = _torch.ops.aten._linalg_check_errors.default, (*node.args, None)
    if node.target is check:
        return cast("GraphNode", first)
    return cast("GraphNode", rest[1]) if node.target is _with_effects and rest[0] is check else None


def _reads_its_own(node: GraphNode) -> bool:
    """Whether a node of ``as_strided`` reads elements of its operand by their numbers.

    An offset counts from the begin of the memory, of which the operand may be a part; torch has no
    guards on where in its memory an operand of the graph is.
    """
    args: Any = node.args
    source, size, stride, *offset = args
    fake: Any = _fake(source)
    if not fake.is_contiguous():
        return False
    if not offset or offset[0] is None:
        known = all(isinstance(n, int) for n in (fake.numel(), *size, *stride))
        if known and _reach(size, stride) < fake.numel():
            return True
    while is_view(source):
        source = source.args[0]
        if _fake(source).numel() != fake.numel():
            return False
    return source.op == "call_function"


def _reach(size: Sequence[int], stride: Sequence[int]) -> int:
    """The number of the last element."""
    return sum((n - 1) * by for n, by in zip(size, stride, strict=True))


def _described(fake: Any, sizes: Sizes) -> Any:
    """The types of the tensors among results."""
    if isinstance(fake, torch.Tensor):
        return type_of(fake, sizes)
    if isinstance(fake, list | tuple):
        return tuple(_described(each, sizes) for each in cast("Sequence[Any]", fake))
    return fake


def _fake(node: GraphNode) -> Any:
    return node.meta.get("val")


def symbols_of(traced: Sequence[GraphNode]) -> dict[str, dict[int, Dim]]:
    """The symbols among the sizes of placeholders, as ``ptir.jit`` takes them for `function_of`."""
    found: dict[str, dict[int, Dim]] = {}
    for number, node in enumerate(traced):
        shape = type_of(node.meta["val"], {}).shape
        axes = {axis: extent for axis, extent in enumerate(shape) if isinstance(extent, Dim)}
        if axes:
            found[f"operands[{number}]"] = axes
    return found


def function_of(
    module: GraphModule,
    traced: Sequence[GraphNode],
    known: Mapping[GraphNode, Any],
    tracing: Tracing,
    views: Views | None = None,
) -> Callable[..., tuple[Any, ...]]:
    """``module`` as a function of the ``traced`` placeholders; the others are ``known``. Without
    the results that are ``views``."""

    def program(*operands: Tensor) -> tuple[Any, ...]:
        tracing.fallbacks.clear()
        given = dict(zip(traced, operands, strict=True))
        results = interpret(module, {**known, **given}, tracing)
        return tuple(results if views is None else views.others(results))

    return program
