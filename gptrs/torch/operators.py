"""One operator of a graph: its meaning from the table with torch's dtypes, or torch itself.

`apply_operator` looks up an ATen operator in `gptrs.torch.aten`, casts the operands as torch's
promotion does, and the results to what torch says that they are. What the table lacks or refuses
becomes a callback, in which torch runs the operator on the same memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import _prims_common

from gptrs.errors import DimError, DTypeError, PtirError
from gptrs.ir.dims import Dim
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, Type
from gptrs.torch.aten import TABLE, Operands, UnsupportedError
from gptrs.torch.aten.table import ptir
from gptrs.torch.size_arithmetic import is_fraction
from gptrs.torch.tensors import array_of, dtype_of, tensor_of

_common: Any = _prims_common
_MEMORY = frozenset(("device", "layout", "pin_memory", "memory_format", "requires_grad"))
_KINDS = {
    Operands.PROMOTED: _common.ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT,
    Operands.TO_FLOAT: _common.ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT,
}


class Fallback(NamedTuple):
    """An operator that torch runs, and why."""

    operator: str
    reason: str


class Node(NamedTuple):
    """An operator with its operands: the traced ones, and torch's own description of them."""

    target: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    fake_args: tuple[Any, ...]
    fake_kwargs: Mapping[str, Any]
    result: Any
    """The types of its results: one, a sequence of them, or what is no tensor."""
    reads: frozenset[int] | None = None
    """Which of several results the graph reads; None where that is not known."""

    @property
    def name(self) -> str:
        """``"add.Tensor"`` of ATen, ``"prims.iota.default"`` of another namespace."""
        return str(self.target).removeprefix("aten.")


def apply_operator(node: Node, fallbacks: list[Fallback], *, strict: bool = False) -> Any:
    """The results of an operator: a Tensor, a size, or a sequence of them.

    Raises `UnsupportedError` where it is ``strict`` and only torch can run the operator.
    """
    try:
        return _by_table(node)
    except DimError:
        raise
    except PtirError as error:
        if strict:
            raise UnsupportedError(
                f"{node.target} has no form in PTIR: {error.problem}",
                fix='leave out options={"strict": True}, and torch runs it',
            ) from error
        _check_fractions(node, None)
        fallbacks.append(Fallback(node.name, error.problem))
    return _by_torch(node)


def _by_table(node: Node) -> Any:
    meaning = TABLE.get(node.name)
    _check_fractions(node, None if meaning is None else meaning.operands)
    if meaning is None:
        raise UnsupportedError("it is not in the table")
    args = tuple(_own(a) for a in node.args)
    kwargs = {k: _own(v) for k, v in node.kwargs.items() if k not in _MEMORY}
    if meaning.operands in _KINDS:
        args, kwargs = _promoted(node, _KINDS[meaning.operands], args, kwargs)
    elif meaning.operands in (Operands.TO_RESULT, Operands.CHOSEN):
        dtype = node.result.dtype
        first = args[:1] if meaning.operands is Operands.CHOSEN else (_cast(args[0], dtype),)
        rest = args[1:] if meaning.operands is Operands.TO_RESULT else _all_cast(args[1:], dtype)
        args = (*first, *rest)
    made = meaning.function(*args, **kwargs)
    _check_made(made, node)
    return _conformed(made, node.result)


def _check_made(made: Any, node: Node) -> None:
    """Raises `UnsupportedError` where the graph reads a result that the table leaves out."""
    if isinstance(made, tuple) and isinstance(node.result, tuple):
        for number, value in enumerate(cast("tuple[Any, ...]", made)):
            if value is None and (node.reads is None or number in node.reads):
                raise UnsupportedError(f"its result {number} is not in the table")


def _check_fractions(node: Node, operands: Operands | None) -> None:
    """Raises `DimError` for a number that depends on sizes where the operator does not cast it."""
    given = (*node.args, *node.kwargs.values())
    described = (*node.fake_args, *node.fake_kwargs.values())
    for value, fake in zip(given, described, strict=True):
        if isinstance(value, Tensor) and is_fraction(fake) and operands not in _KINDS:
            raise DimError(f"{node.target} takes a number that depends on sizes")


def _own(value: Any) -> Any:
    """An attribute of torch in PTIR's terms."""
    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, torch.device | torch.layout | torch.memory_format):
        return None
    if isinstance(value, list | tuple):
        return tuple(_own(v) for v in cast("Sequence[Any]", value))
    return value


def _promoted(
    node: Node, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The tensors among the operands in their common dtype."""
    described = (*node.fake_args, *node.fake_kwargs.values())
    numbers = [_as_number(v) for v in described]
    fakes = [v for v in numbers if isinstance(v, torch.Tensor) or _is_number(v)]
    _, common = _common.elementwise_dtypes(*fakes, type_promotion_kind=kind)
    dtype = dtype_of(common)
    if not any(isinstance(a, Tensor) for a in args):
        raise UnsupportedError("no operand is a tensor")
    names = kwargs.keys()
    return _all_cast(args, dtype), dict(zip(names, _all_cast(kwargs.values(), dtype), strict=True))


def _all_cast(values: Iterable[Any], dtype: DType) -> tuple[Any, ...]:
    return tuple(_cast(v, dtype) if isinstance(v, Tensor) else v for v in values)


def _as_number(fake: Any) -> Any:
    """A number of the kind of a symbolic one, as torch promotes them alike."""
    if is_fraction(fake):
        return 1.0
    return 1 if isinstance(fake, torch.SymInt) else fake


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex)


def _cast(x: Tensor, dtype: DType) -> Tensor:
    if x.dtype is dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex:
        x = ptir.real(x)
    return ptir.not_equal(x, 0) if dtype.is_bool else ptir.cast(x, dtype=dtype)


def _conformed(value: Any, wanted: Any) -> Any:
    """Results in torch's dtypes. Raises `UnsupportedError` where the shape is another one."""
    if value is None:
        return None
    if isinstance(wanted, Type):
        made: Tensor = ptir.asarray(value)
        if not _may_agree(made.shape, wanted.shape):
            raise UnsupportedError(f"its result has the shape {made.shape}, expected {wanted}")
        return _cast(made, wanted.dtype)
    if isinstance(wanted, tuple):
        values: Sequence[Any] = value
        pairs = zip(values, cast("tuple[Any, ...]", wanted), strict=True)
        return tuple(_conformed(v, w) for v, w in pairs)
    return value


def _may_agree(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether the extents that are known agree."""
    if len(found) != len(wanted):
        return False
    pairs = zip(found, wanted, strict=True)
    return all(isinstance(a, Dim) or isinstance(b, Dim) or a == b for a, b in pairs)


def _by_torch(node: Node) -> Any:
    """The operator in a callback, which gives the values of the Tensors to torch."""
    tensors: list[Tensor] = []

    def take(value: Any) -> Any:
        if isinstance(value, Tensor):
            tensors.append(value)
            return _Place(len(tensors) - 1)
        if isinstance(value, Dim):
            tensors.append(ptir.full((), 0, dtype=ptir.si64) + value)
            return _Place(len(tensors) - 1, is_size=True)
        if isinstance(value, list | tuple):
            return [take(v) for v in cast("Sequence[Any]", value)]
        return value

    args = [take(a) for a in node.args]
    kwargs = {name: take(value) for name, value in node.kwargs.items()}
    result = _read(node)  # torch may say another shape of what nobody reads than it has
    types = tuple(_types(result))

    def run(*arrays: Any) -> tuple[Any, ...]:
        def give(value: Any) -> Any:
            if isinstance(value, _Place):
                tensor = tensor_of(arrays[value.number])
                return int(tensor) if value.is_size else tensor
            return [give(v) for v in cast("list[Any]", value)] if isinstance(value, list) else value

        with torch.no_grad():
            made = node.target(
                *(give(a) for a in args), **{name: give(v) for name, v in kwargs.items()}
            )
        # Some operators give another dtype than torch says that they do.
        pairs = zip(_tensors(_left(made, result)), types, strict=True)
        return tuple(
            array_of(t.contiguous()).astype(wanted.dtype.numpy, copy=False) for t, wanted in pairs
        )

    run.__qualname__ = run.__name__ = f"torch.{node.name}"
    returned = ptir.callback(run, *tensors, result=types or None)
    return _filled(result, iter(returned or ()))


def _read(node: Node) -> Any:
    """The types of the results, None for those that the graph does not read."""
    reads = node.reads
    if reads is None or not isinstance(node.result, tuple):
        return node.result
    each = enumerate(cast("tuple[Any, ...]", node.result))
    return tuple(wanted if number in reads else None for number, wanted in each)


def _left(made: Any, result: Any) -> Any:
    """The results whose types are known."""
    if not isinstance(result, tuple) or made is None:
        return made
    given = cast("Sequence[Any]", made)
    types = cast("tuple[Any, ...]", result)
    return [each for each, wanted in zip(given, types, strict=True) if wanted is not None]


class _Place(NamedTuple):
    """The place of a value among the arrays of a callback."""

    number: int
    is_size: bool = False


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors among torch's results."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in cast("Sequence[Any]", value):
            yield from _tensors(each)


def _types(wanted: Any) -> Iterator[Type]:
    if isinstance(wanted, Type):
        yield wanted
    elif isinstance(wanted, tuple):
        for each in cast("tuple[Any, ...]", wanted):
            yield from _types(each)


def _filled(wanted: Any, given: Iterator[Any]) -> Any:
    """Results in the places of their types."""
    if isinstance(wanted, Type):
        return next(given)
    if isinstance(wanted, tuple):
        return tuple(_filled(w, given) for w in cast("tuple[Any, ...]", wanted))
    if wanted is None:
        return None
    raise DTypeError(f"torch returns {wanted!r}, which is no tensor")
