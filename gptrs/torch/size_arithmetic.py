"""Arithmetic of sizes: what is whole stays a size, fractions are numbers of the program.

``x.shape[0] ** -0.5`` of a symbolic size is a float64 without axes, which the operator that takes
it casts as torch casts a Python number: one program serves all sizes. What a number cannot be (a
size, a Python number that leaves the program) raises `DimError`, and the graph gets a program for
each size.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from gptrs.errors import DimError
from gptrs.ir.dims import Dim
from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import ptir

_torch: Any = torch
_operator: Any = operator
_OF_SIZES: dict[Any, Callable[..., Any]] = {
    _torch.sym_min: min,
    _torch.sym_max: max,
    _torch.sym_not: operator.not_,
}
"""Functions of torch that take its own sizes alone."""
_OF_NUMBERS: dict[Any, Callable[..., Tensor]] = {
    operator.add: ptir.add,
    operator.sub: ptir.subtract,
    operator.mul: ptir.multiply,
    _operator.truediv: ptir.divide,
    _operator.pow: ptir.power,
    operator.neg: ptir.negative,
    _torch.sym_float: ptir.asarray,
    _torch._sym_sqrt: ptir.sqrt,
}


def compute(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a function of sizes and numbers. Raises `DimError` where it has to be known
    while tracing."""
    given = (*args, *kwargs.values())
    if not any(isinstance(each, Tensor) for each in given):
        try:
            whole: Any = _OF_SIZES.get(target, target)
            return whole(*args, **kwargs)
        except (TypeError, DimError):
            if not any(isinstance(each, Dim) for each in given):
                raise
    function = _OF_NUMBERS.get(target)
    if function is None or kwargs:
        name = getattr(target, "__name__", target)
        raise DimError(f"{name} of {', '.join(map(str, given))} is not known while tracing")
    return function(*map(_number, args))


def _number(value: Any) -> Any:
    """A size or a number as a float64 without axes."""
    if isinstance(value, Dim):
        value = ptir.zeros((), dtype=ptir.si64) + value
    if isinstance(value, Tensor):
        return ptir.cast(value, dtype=ptir.f64)
    return ptir.full((), float(value), dtype=ptir.f64)


def is_fraction(fake: Any) -> bool:
    """Whether torch describes a value as a number that depends on sizes."""
    return isinstance(fake, torch.SymFloat)


def check_results(results: Sequence[Any], fakes: Sequence[Any]) -> None:
    """Raises `DimError` where a number of the program is to leave it as a Python number."""
    for result, fake in zip(results, fakes, strict=True):
        if isinstance(result, Tensor) and is_fraction(fake):
            raise DimError("a result is a number that depends on sizes")
