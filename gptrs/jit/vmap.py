"""``ptir.vmap``: a function of one example becomes a function of a batch of examples.

`gptrs.ir.batching` does it; here it is a decorator, which keeps a function from ``ptir.jit``
compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

from gptrs import settings
from gptrs.errors import ArgumentError, PtirError, shown, user_location, user_traceback
from gptrs.ir.batching.over_batch import Axes, over_batch
from gptrs.ir.traced import located
from gptrs.jit.function import JitFunction


def vmap(function: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[..., Any]:
    """``function``, which takes and returns one example, over a batch of examples.

    ``in_axes`` says which axis of each argument the examples lie along: an integer, None for an
    argument that all share, a tuple with an entry for each positional argument. An entry for a
    container may be a container of entries. Arguments by keyword lie along their first axis;
    numbers for parameters that have a default are shared. ``out_axes`` says the same of the
    results; None needs a result that is the same for all. Inside the function arrays have one axis
    less, so axes and conditions are those of one example. Where a condition differs by example both
    branches run, and a loop runs until all are done.

    ``vmap`` works in ``ptir.jit``, around it and alone, on itself and in the bodies of loops. A
    function from ``ptir.jit`` stays compiled. Raises `ShapeError` where sizes differ or an axis is
    out of range, `ArgumentError` where nothing is mapped or the axes do not fit the arguments.
    """
    if not callable(function):
        raise located(ArgumentError(f"ptir.vmap takes a function, found {shown(function)}"))
    name = getattr(function, "__qualname__", "function").replace("<locals>.", "")

    @functools.wraps(function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return over_batch(function, args, kwargs, in_axes=in_axes, out_axes=out_axes)
        except PtirError as error:
            error.context.append(f"vmap({name})")
            error.where = error.where or user_location()
            raise user_traceback(error, full=settings.full_traceback()) from None

    if isinstance(function, JitFunction):
        return cast("JitFunction[..., Any]", function).derived(mapped, f"vmap({name})")
    return mapped
