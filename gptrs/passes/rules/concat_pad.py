"""Rules on concat, pad and tile."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import dim, same, same_shape
from gptrs.ir.ops.literal import full
from gptrs.ir.ops.reduce import cumsum
from gptrs.ir.ops.shape import broadcast_to, concat, pad, slice_, tile
from gptrs.ir.program import Instruction, key_of
from gptrs.ir.rewrite import rewrite
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType
from gptrs.ir.use_def import UseDef
from gptrs.passes.rules.shapes import beside, is_one

Counts = tuple[int, ...]
M, N = dim("m"), dim("n")


@rewrite(lambda x, a: concat((x,), axis=a), samples=[{"x": "T[m,n]", "a": 1}])
def drop_single_concat(x: Tensor) -> Tensor:
    """concat of one operand is the operand."""
    return x


@rewrite(
    lambda xs, a: concat(xs, axis=a),
    samples=[{"xs": ("T[m,n]", "T[m,0]", "T[m,2]"), "a": 1}],
)
def drop_empty_parts(xs: tuple[Tensor, ...], a: int) -> Tensor | None:
    """Operands of concat without elements are dropped."""
    kept = [x for x in xs if not same(x.shape[a], 0)] or [xs[0]]
    if len(kept) == len(xs):
        return None
    return kept[0] if len(kept) == 1 else concat(tuple(kept), axis=a)


@rewrite(
    lambda xs, a: concat(xs, axis=a),
    samples=[
        {
            "x": "T[m,n]",
            "y": "T[m,2]",
            "xs": lambda x, y: (x, concat((y, x, y), axis=1), y),
            "a": 1,
        }
    ],
)
def flatten_concat(xs: tuple[Tensor, ...], a: int, facts: UseDef) -> Tensor | None:
    """A concat with one use, along the same axis of another concat, is flattened into it."""
    parts: list[Tensor] = []
    for x in xs:
        inner = facts.made_by(x, concat)
        if inner is not None and inner.attrs["axis"] == a and facts.is_alone(inner.result):
            parts += [beside(x, part) for part in inner.values()]
        else:
            parts.append(x)
    return None if len(parts) == len(xs) else concat(tuple(parts), axis=a)


@rewrite(
    lambda xs, a: concat(xs, axis=a),
    samples=[
        {
            "x": "T[m,9]",
            "xs": lambda x: (x[:, 1:4], x[:, 4:6], x[:, 6:9], x[:, 0:2]),
            "a": 1,
        },
        {"x": "T[m + 4,n]", "xs": lambda x: (x[:2], x[2:]), "a": 0},
    ],
)
def join_slices(xs: tuple[Tensor, ...], a: int, facts: UseDef) -> Tensor | None:
    """concat of adjacent slices of one value is one slice."""
    parts: list[Tensor] = []
    last: Instruction | None = None
    for x in xs:
        current = facts.made_by(x, slice_)
        if last is not None and current is not None and _continues(last, current, a):
            size = last.attrs["sizes"][a] + current.attrs["sizes"][a]
            sizes = (*last.attrs["sizes"][:a], size, *last.attrs["sizes"][a + 1 :])
            source = beside(x, last.operands[0])
            attrs = last.attrs
            parts[-1] = slice_(
                source, starts=attrs["starts"], sizes=sizes, strides=attrs["strides"]
            )
            last = None  # a longer run is joined the next time
        else:
            parts.append(x)
            last = current
    if len(parts) == len(xs):
        return None
    return parts[0] if len(parts) == 1 else concat(tuple(parts), axis=a)


def _continues(last: Instruction, current: Instruction, axis: int) -> bool:
    """Whether ``current`` begins where ``last`` ends, and both agree along the other axes."""
    if last.operands[0] is not current.operands[0]:
        return False
    start, size, stride = (last.attrs[name][axis] for name in ("starts", "sizes", "strides"))
    expected = (*last.attrs["starts"][:axis], start + size * stride)
    expected = (*expected, *last.attrs["starts"][axis + 1 :])
    others = range(len(expected))
    return (
        same_shape(current.attrs["starts"], expected)
        and current.attrs["strides"] == last.attrs["strides"]
        and all(
            same(current.attrs["sizes"][i], last.attrs["sizes"][i]) for i in others if i != axis
        )
    )


@rewrite(
    lambda x, lo, hi, gap, v: pad(x, low=lo, high=hi, interior=gap, value=v),
    samples=[{"x": "T[m,n]", "lo": (0, 0), "hi": (0, 0), "gap": (0, 0), "v": 0}],
)
def drop_empty_pad(x: Tensor, lo: Counts, hi: Counts, gap: Counts) -> Tensor | None:
    """pad by zero elements."""
    return None if any((*lo, *hi, *gap)) else x


@rewrite(
    lambda x, lo, hi, gap, v, low, high, none, w: pad(
        pad(x, low=lo, high=hi, interior=gap, value=v), low=low, high=high, interior=none, value=w
    ),
    samples=[
        {
            "x": "T[m,n]",
            "lo": (1, 0),
            "hi": (2, 0),
            "gap": (0, 2),
            "v": 1,
            "low": (0, 3),
            "high": (4, 1),
            "none": (0, 0),
            "w": 1,
        }
    ],
)
def merge_pads(
    x: Tensor,
    lo: Counts,
    hi: Counts,
    gap: Counts,
    v: Any,
    low: Counts,
    high: Counts,
    none: Counts,
    w: Any,
) -> Tensor | None:
    """pad of pad with the same value is one pad."""
    if any(none) or key_of(v) != key_of(w):
        return None
    low = tuple(i + j for i, j in zip(lo, low, strict=True))
    high = tuple(i + j for i, j in zip(hi, high, strict=True))
    return pad(x, low=low, high=high, interior=gap, value=v)


@rewrite(
    lambda a, v, t, lo, hi, gap, w: pad(
        full(shape=a, value=v, dtype=t), low=lo, high=hi, interior=gap, value=w
    ),
    samples=[
        {"a": (2, M), "v": 1, "t": "T", "lo": (1, 0), "hi": (2, 3), "gap": (1, 0), "w": 1},
        {"a": (2,), "v": True, "t": "i1", "lo": (1,), "hi": (2,), "gap": (0,), "w": True},
    ],
)
def pad_full(
    a: Any, v: Any, t: DType, lo: Counts, hi: Counts, gap: Counts, w: Any
) -> Tensor | None:
    """pad of full with the same value is a larger full."""
    if key_of(v) != key_of(w) or any(gap[i] and not isinstance(n, int) for i, n in enumerate(a)):
        return None
    shape = tuple(
        n + i + j + (max(n - 1, 0) * k if k else 0)
        for n, i, j, k in zip(a, lo, hi, gap, strict=True)
    )
    return full(shape=shape, value=v, dtype=t)


@rewrite(
    lambda x, r: tile(x, reps=r),
    samples=[{"x": "T[m,n]", "r": (1, 1)}, {"x": "T[]", "r": ()}],
)
def drop_single_tile(x: Tensor, r: Counts) -> Tensor | None:
    """tile with one repetition along every axis."""
    return x if all(count == 1 for count in r) else None


@rewrite(
    lambda x, r: tile(x, reps=r),
    samples=[{"x": "T[m,1]", "r": (1, 3)}, {"x": "T[1,1,n]", "r": (2, 0, 1)}],
)
def broadcast_for_tile(x: Tensor, r: Counts) -> Tensor | None:
    """tile along axes of extent 1 is a broadcast, which needs no copy."""
    if any(count != 1 and not is_one(n) for n, count in zip(x.shape, r, strict=True)):
        return None
    shape = tuple(n * count for n, count in zip(x.shape, r, strict=True))
    return broadcast_to(x, shape=shape)


@rewrite(
    lambda x, r, s: tile(tile(x, reps=r), reps=s),
    samples=[{"x": "T[m,n]", "r": (2, 1), "s": (2, 3)}],
)
def merge_tiles(x: Tensor, r: Counts, s: Counts) -> Tensor:
    """tile of tile is one tile: the repetitions multiply."""
    return tile(x, reps=tuple(i * j for i, j in zip(r, s, strict=True)))


@rewrite(
    lambda a, v, t, r: tile(full(shape=a, value=v, dtype=t), reps=r),
    samples=[{"a": (M, 2), "v": 1, "t": "T", "r": (2, 3)}],
)
def tile_full(a: Any, v: Any, t: DType, r: Counts) -> Tensor:
    """tile of full is a larger full."""
    return full(shape=tuple(n * count for n, count in zip(a, r, strict=True)), value=v, dtype=t)


@rewrite(lambda x, a: cumsum(x, axis=a), samples=[{"x": "T[m,1]", "a": 1}])
def drop_short_cumsum(x: Tensor, a: int) -> Tensor | None:
    """cumsum along an axis of extent 1 is its operand."""
    return x if is_one(x.shape[a]) else None
