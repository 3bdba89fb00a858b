"""Fitting a memory limit: the longest context, the largest batch, or weights in 16 bits."""

from __future__ import annotations

from collections.abc import Callable

from gptrs.byte_sizes import size_text
from gptrs.errors import ArgumentError
from gptrs.ir.types import bf16, f32
from gptrs.lazy_dataclass import dataclass
from gptrs.memory.estimate import MemoryEstimate, ModelMemory
from gptrs.text.configured_model import takes_layout

_MOST_ROWS = 2**16


@dataclass(frozen=True)
class Fit:
    """The sizes of a model that fit ``limit`` bytes."""

    limit: int
    asked: MemoryEstimate
    context: int | None
    """The longest at the requested batch; 0: none, None: the model takes images."""
    batch: int
    """The largest at the requested context; 0: none."""

    @property
    def fits(self) -> bool:
        """Whether the requested sizes fit."""
        return self.asked.total <= self.limit


def fit(
    model: ModelMemory,
    limit: int,
    *,
    context: int | None = None,
    batch: int = 1,
    threads: int | None = None,
) -> Fit:
    """The sizes of ``model`` that fit ``limit`` bytes. Raises `ArgumentError`."""
    asked = model.at(context=context, batch=batch, threads=threads)

    def takes(context: int | None, batch: int) -> bool:
        return model.at(context=context, batch=batch, threads=threads).total <= limit

    longest = model.longest
    return Fit(
        limit,
        asked,
        None if longest is None else _largest(lambda tokens: takes(tokens, batch), longest),
        _largest(lambda rows: takes(asked.context, rows), _MOST_ROWS),
    )


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """A number up to ``most`` that fits, by bisection, where the next one does not: the largest, as
    far as ``fits`` is monotonic (more rows are read in shorter chunks, which may take less). 0:
    none."""
    good, bad = 0, 1
    while bad <= most and fits(bad):
        good, bad = bad, min(2 * bad, most) if bad < most else most + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good


def refuse_above(limit: int, model: ModelMemory, context: int | None, batch: int) -> None:
    """Raise `ArgumentError`, with sizes that would fit, for a model that takes more than ``limit``
    bytes."""
    found = fit(model, limit, context=context, batch=batch)
    if found.fits:
        return
    asked = found.asked
    parts = ", ".join(f"{name} {size_text(size)}" for name, size in asked.parts().items() if size)
    what = f"{batch} images at once" if asked.context is None else f"a context of {asked.context}"
    rows = f" in {batch} rows" if batch > 1 and asked.context is not None else ""
    raise ArgumentError(
        f"the model takes {size_text(asked.total)} with {what}{rows} ({parts}), memory_limit is"
        f" {size_text(limit)}",
        fix=_advice(found, model, context, batch),
    )


def _advice(found: Fit, model: ModelMemory, context: int | None, batch: int) -> str:
    """The changes that would make it fit, in words."""
    advice: list[str] = []
    if found.context:
        advice.append(f"load it with context={found.context}")
    if 0 < found.batch < batch:
        advice.append(f"with batch={found.batch}")
    halved = model.converted(bf16).at(context=context, batch=batch)
    if found.limit >= halved.total < found.asked.total:
        size = size_text(halved.total)
        advice.append(f"convert the weights (gptrs convert --dtype bf16), which takes {size}")
    if found.context is not None and model.cache.dtype is f32 and takes_layout(model.module):
        narrow = model.caching(bf16).at(context=context, batch=batch)
        if found.limit >= narrow.total < found.asked.total:
            size = size_text(narrow.total)
            advice.append(f"load it with kv_cache_dtype='bf16', which takes {size}")
    return ", or ".join(advice) or "raise memory_limit, or choose a smaller model"
