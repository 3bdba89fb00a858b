"""Slice rules: merged, and moved before transpose, reshape, broadcast, concat and pad."""

from __future__ import annotations

from gptrs.ir.dims import DimLike, Shape, dim, same, same_shape, surely_greater
from gptrs.ir.ops.dynamic import Start, dynamic_slice, dynamic_update_slice
from gptrs.ir.ops.literal import full
from gptrs.ir.ops.shape import broadcast_to, concat, pad, reshape, slice_, transpose
from gptrs.ir.rewrite import rewrite
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType
from gptrs.passes.rules.shapes import (
    Dims,
    Perm,
    box_lies_inside,
    differ_in_ones,
    in_shape,
    is_one,
    lies_inside,
    longer_axes,
    repeated,
)

Steps = tuple[int, ...]
K, M, N = dim("k"), dim("m"), dim("n")


def cut(x: Tensor, starts: Dims, sizes: Dims, strides: Steps) -> Tensor:
    """The slice, or ``x`` if the slice is the whole of it."""
    if same_shape(x.shape, sizes) and all(step == 1 for step in strides):
        return x
    return slice_(x, starts=tuple(starts), sizes=tuple(sizes), strides=tuple(strides))


@rewrite(
    lambda x, b, n, s: slice_(x, starts=b, sizes=n, strides=s),
    samples=[
        {"x": "T[m,n]", "b": (0, 0), "n": (M, N), "s": (1, 1)},
        {"x": "T[]", "b": (), "n": (), "s": ()},
    ],
)
def drop_full_slice(x: Tensor, n: Dims, s: Steps) -> Tensor | None:
    """A slice of the whole operand."""
    return x if same_shape(x.shape, n) and all(step == 1 for step in s) else None


@rewrite(
    lambda x, b, n, s, c, m, t: slice_(
        slice_(x, starts=b, sizes=n, strides=s), starts=c, sizes=m, strides=t
    ),
    samples=[
        {
            "x": "T[9,n + 4]",
            "b": (1, 0),
            "n": (4, N + 3),
            "s": (2, 1),
            "c": (1, 2),
            "m": (2, N),
            "t": (1, 1),
        },
        {"x": "f32[20]", "b": (2,), "n": (8,), "s": (2,), "c": (1,), "m": (3,), "t": (3,)},
        {"x": "f32[3]", "b": (0,), "n": (2,), "s": (2,), "c": (2,), "m": (0,), "t": (1,)},
        {"x": "f32[20]", "b": (2,), "n": (8,), "s": (2,), "c": (7,), "m": (8,), "t": (-1,)},
    ],
)
def merge_slices(x: Tensor, b: Dims, s: Steps, c: Dims, m: Dims, t: Steps) -> Tensor | None:
    """A slice of a slice. An empty one, after the last of wide steps, must not begin outside of
    x."""
    starts: list[DimLike] = []
    for first, then, step, size in zip(b, c, s, m, strict=True):
        if step != 1 and not same(size, 0) and not surely_greater(size, 0):
            return None
        starts.append(first if same(size, 0) else first + then * step)
    return slice_(
        x,
        starts=tuple(starts),
        sizes=m,
        strides=tuple(i * j for i, j in zip(s, t, strict=True)),
    )


@rewrite(
    lambda x, p, b, n, s: slice_(transpose(x, perm=p), starts=b, sizes=n, strides=s),
    samples=[{"x": "T[n,7,m + 2]", "p": (2, 0, 1), "b": (1, 0, 2), "n": (M, N, 2), "s": (1, 1, 3)}],
    alone=True,
)
def slice_before_transpose(x: Tensor, p: Perm, b: Dims, n: Dims, s: Steps) -> Tensor:
    """slice moves before a transpose: fewer elements are moved."""
    at = [p.index(axis) for axis in range(len(p))]
    inner = cut(x, tuple(b[i] for i in at), tuple(n[i] for i in at), tuple(s[i] for i in at))
    return transpose(inner, perm=p)


@rewrite(
    lambda x, a, b, n, s: slice_(reshape(x, shape=a), starts=b, sizes=n, strides=s),
    samples=[
        {
            "x": "T[m + 3,5]",
            "a": (M + 3, 1, 5, 1),
            "b": (1, 0, 0, 0),
            "n": (M, 1, 3, 1),
            "s": (1, 1, 2, 1),
        },
        {"x": "T[m + 1,1]", "a": (M + 1,), "b": (1,), "n": (M,), "s": (1,)},
    ],
    alone=True,
)
def slice_before_reshape(x: Tensor, a: Shape, b: Dims, n: Dims, s: Steps) -> Tensor | None:
    """slice moves before a reshape that only adds or drops axes of extent 1."""
    if not differ_in_ones(x.shape, a) or any(
        is_one(e) and not is_one(k) for e, k in zip(a, n, strict=True)
    ):
        return None
    starts: list[DimLike] = [0] * x.ndim
    sizes, strides = [*x.shape], [1] * x.ndim
    for old, new in zip(longer_axes(x.shape), longer_axes(a), strict=True):
        starts[old], sizes[old], strides[old] = b[new], n[new], s[new]
    return in_shape(cut(x, tuple(starts), tuple(sizes), tuple(strides)), n)


@rewrite(
    lambda x, a, b, n, s: slice_(broadcast_to(x, shape=a), starts=b, sizes=n, strides=s),
    samples=[
        {"x": "T[1,n + 1]", "a": (3, 4, N + 1), "b": (1, 0, 1), "n": (1, 2, N), "s": (1, 3, 1)},
        {"x": "T[]", "a": (4,), "b": (1,), "n": (2,), "s": (1,)},
    ],
    alone=True,
)
def slice_before_broadcast(x: Tensor, a: Shape, b: Dims, n: Dims, s: Steps) -> Tensor | None:
    """slice moves before a broadcast."""
    if not box_lies_inside(b, n, s, a):
        return None  # whether it fits is known when it runs
    missing = len(a) - x.ndim
    starts: list[DimLike] = [0] * x.ndim
    sizes, strides = [*x.shape], [1] * x.ndim
    for axis in longer_axes(x.shape):
        at = axis + missing
        starts[axis], sizes[axis], strides[axis] = b[at], n[at], s[at]
    return repeated(cut(x, tuple(starts), tuple(sizes), tuple(strides)), n)


@rewrite(
    lambda a, v, t, b, n, s: slice_(full(shape=a, value=v, dtype=t), starts=b, sizes=n, strides=s),
    samples=[{"a": (5, M), "v": 1, "t": "T", "b": (1, 0), "n": (2, M), "s": (2, 1)}],
)
def slice_full(a: Shape, v: object, t: DType, b: Dims, n: Dims, s: Steps) -> Tensor | None:
    """slice of full is a smaller full."""
    if not box_lies_inside(b, n, s, a):
        return None
    return full(shape=n, value=v, dtype=t)  # pyright: ignore[reportArgumentType]


@rewrite(
    lambda xs, a, b, n, s: slice_(concat(xs, axis=a), starts=b, sizes=n, strides=s),
    samples=[
        {"xs": ("T[m,2]", "T[m,5]"), "a": 1, "b": (0, 3), "n": (M, 2), "s": (1, 2)},
        {"xs": ("T[m,2]", "T[m,5]"), "a": 1, "b": (0, 6), "n": (M, 5), "s": (1, -1)},
        {"xs": ("T[m]", "T[n + 2]", "T[3]"), "a": 0, "b": (M + 1,), "n": (N + 1,), "s": (1,)},
    ],
)
def slice_one_part(xs: tuple[Tensor, ...], a: int, b: Dims, n: Dims, s: Steps) -> Tensor | None:
    """A slice that lies in one operand of a concat is a slice of that operand."""
    first: DimLike = 0
    for x in xs:
        if lies_inside(b[a] - first, n[a], s[a], x.shape[a]) and not same(n[a], 0):
            starts = (*b[:a], b[a] - first, *b[a + 1 :])
            return cut(x, starts, n, s)
        first = first + x.shape[a]
    return None


@rewrite(
    lambda x, lo, hi, v, b, n, s: slice_(
        pad(x, low=lo, high=hi, interior=(0, 0), value=v), starts=b, sizes=n, strides=s
    ),
    samples=[
        {
            "x": "T[m + 2,6]",
            "lo": (1, 2),
            "hi": (0, 1),
            "v": 0,
            "b": (2, 3),
            "n": (M, 3),
            "s": (1, 2),
        },
        {
            "x": "T[3,6]",
            "lo": (1, 2),
            "hi": (0, 1),
            "v": 0,
            "b": (3, 7),
            "n": (3, 3),
            "s": (-1, -2),
        },
    ],
)
def slice_inside_padding(x: Tensor, lo: Steps, b: Dims, n: Dims, s: Steps) -> Tensor | None:
    """A slice of a pad that contains no padding is a slice of the operand."""
    starts = tuple(i - j for i, j in zip(b, lo, strict=True))
    return cut(x, starts, n, s) if box_lies_inside(starts, n, s, x.shape) else None


@rewrite(
    lambda x, at, n: dynamic_slice(x, at, sizes=n),
    samples=[{"x": "T[m,n]", "at": ("si32[]", "si64[]"), "n": (M, N)}],
)
def drop_full_dynamic_slice(x: Tensor, n: Dims) -> Tensor | None:
    """dynamic_slice as large as ``x`` is ``x``: its start is clamped to 0."""
    return x if same_shape(x.shape, n) else None


@rewrite(
    lambda x, at, n: dynamic_slice(x, at, sizes=n),
    samples=[{"x": "T[m,7]", "at": (3, 4), "n": (M, 5)}, {"x": "T[6]", "at": (2,), "n": (3,)}],
)
def fix_dynamic_slice(x: Tensor, at: Start, n: Dims) -> Tensor | None:
    """dynamic_slice with a constant start is a slice, the start clamped at compile time."""
    starts: list[DimLike] = []
    for first, size, extent in zip(at, n, x.shape, strict=True):
        if same(size, extent):
            starts.append(0)
        elif isinstance(first, int) and isinstance(size, int) and isinstance(extent, int):
            starts.append(min(max(first, 0), extent - size))
        else:
            return None
    return cut(x, tuple(starts), n, (1,) * x.ndim)


@rewrite(
    lambda x, u, at: dynamic_update_slice(x, u, at),
    samples=[{"x": "T[m,n]", "u": "T[m,n]", "at": ("si32[]", 0)}],
)
def replace_all(x: Tensor, u: Tensor) -> Tensor | None:
    """dynamic_update_slice as large as ``x`` is the update."""
    return u if same_shape(x.shape, u.shape) else None
