"""Layout rules: reshape, transpose and broadcast_to, merged to at most one of each, broadcast
last."""

from __future__ import annotations

from gptrs.ir.dims import Shape, dim, same_shape
from gptrs.ir.ops.elementwise import stop_gradient
from gptrs.ir.ops.literal import full
from gptrs.ir.ops.shape import broadcast_to, reshape, transpose
from gptrs.ir.rewrite import rewrite
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType
from gptrs.passes.rules.shapes import (
    Perm,
    differ_in_ones,
    has_one_element,
    in_shape,
    is_one,
    longer_axes,
    permuted,
)

K, M, N = dim("k"), dim("m"), dim("n")


@rewrite(
    lambda x, p, q: transpose(transpose(x, perm=p), perm=q),
    samples=[
        {"x": "T[k,m,n]", "p": (1, 2, 0), "q": (0, 2, 1)},
        {"x": "i1[m]", "p": (0,), "q": (0,)},
    ],
)
def merge_transposes(x: Tensor, p: Perm, q: Perm) -> Tensor:
    """Two permutations are one."""
    return permuted(x, [p[i] for i in q])


@rewrite(
    lambda x, p: transpose(x, perm=p),
    samples=[{"x": "T[m,n]", "p": (0, 1)}, {"x": "T[]", "p": ()}],
)
def drop_identity_transpose(x: Tensor, p: Perm) -> Tensor | None:
    """A permutation that leaves every axis in place."""
    return x if p == tuple(range(len(p))) else None


@rewrite(
    lambda x, p: transpose(x, perm=p),
    samples=[{"x": "T[m,1,n]", "p": (1, 0, 2)}, {"x": "T[1,m,n,1]", "p": (1, 3, 2, 0)}],
)
def reshape_for_transpose(x: Tensor, p: Perm) -> Tensor | None:
    """A permutation that only moves axes of extent 1 is a reshape."""
    moved = [axis for axis in p if not is_one(x.shape[axis])]
    if moved != sorted(moved):
        return None
    return reshape(x, shape=tuple(x.shape[axis] for axis in p))


@rewrite(
    lambda x, a, b: reshape(reshape(x, shape=a), shape=b),
    samples=[
        {"x": "T[m,6]", "a": (M * 2, 3), "b": (M, 3, 2)},
        {"x": "T[*]", "a": (-1,), "b": (-1, 1)},
    ],
)
def merge_reshapes(x: Tensor, b: Shape) -> Tensor:
    """reshape of reshape: the last shape counts."""
    return in_shape(x, b)


@rewrite(
    lambda x, s: reshape(x, shape=s),
    samples=[{"x": "T[m,n]", "s": (M, N)}, {"x": "T[]", "s": ()}],
)
def drop_identity_reshape(x: Tensor, s: Shape) -> Tensor | None:
    """A reshape to the operand's own shape."""
    return x if same_shape(x.shape, s) else None


@rewrite(
    lambda x, a, b: broadcast_to(broadcast_to(x, shape=a), shape=b),
    samples=[
        {"x": "T[m,1]", "a": (M, N), "b": (K, M, N)},
        {"x": "T[]", "a": (1,), "b": (M,)},
    ],
)
def merge_broadcasts(x: Tensor, b: Shape) -> Tensor:
    """broadcast_to of broadcast_to: the last shape counts."""
    return broadcast_to(x, shape=b)


@rewrite(
    lambda x, s: broadcast_to(x, shape=s),
    samples=[{"x": "T[m,n]", "s": (M, N)}, {"x": "i1[]", "s": ()}],
)
def drop_identity_broadcast(x: Tensor, s: Shape) -> Tensor | None:
    """A broadcast to the operand's own shape."""
    return x if same_shape(x.shape, s) else None


@rewrite(
    lambda x, s: broadcast_to(x, shape=s),
    samples=[{"x": "T[m,n]", "s": (1, M, N)}, {"x": "T[]", "s": (1, 1)}],
)
def reshape_for_broadcast(x: Tensor, s: Shape) -> Tensor | None:
    """A broadcast that only adds axes of extent 1 is a reshape."""
    added = s[: len(s) - x.ndim]
    if not all(map(is_one, added)) or not same_shape(s[len(added) :], x.shape):
        return None
    return reshape(x, shape=s)


@rewrite(
    lambda x, a, b: broadcast_to(reshape(x, shape=a), shape=b),
    samples=[{"x": "T[m,1]", "a": (1, M, 1), "b": (K, M, N)}],
)
def broadcast_without_reshape(x: Tensor, a: Shape, b: Shape) -> Tensor | None:
    """broadcast_to adds leading axes itself: a reshape that only adds them is dropped."""
    added = a[: max(len(a) - x.ndim, 0)]
    if not all(map(is_one, added)) or not same_shape(a[len(added) :], x.shape):
        return None
    return broadcast_to(x, shape=b)


@rewrite(
    lambda x, a, b: reshape(broadcast_to(x, shape=a), shape=b),
    samples=[
        {"x": "T[1,1]", "a": (M, N), "b": (M * N,)},
        {"x": "T[m,1]", "a": (K, M, N), "b": (K, 1, M, N, 1)},
        {"x": "T[m,1,n]", "a": (M, 1, N), "b": (M, N)},
    ],
    alone=True,
)
def reshape_before_broadcast(x: Tensor, a: Shape, b: Shape) -> Tensor | None:
    """reshape moves before a broadcast of one element, or if it only changes axes of extent 1."""
    if has_one_element(x):
        return broadcast_to(in_shape(x, ()), shape=b)
    if not differ_in_ones(a, b):
        return None
    shape = [*b]
    for old, new in zip(longer_axes(a), longer_axes(b), strict=True):
        axis = old - len(a) + x.ndim
        shape[new] = x.shape[axis] if axis >= 0 else 1
    return broadcast_to(in_shape(x, tuple(shape)), shape=b)


@rewrite(
    lambda x, a, p: transpose(broadcast_to(x, shape=a), perm=p),
    samples=[
        {"x": "T[m,1]", "a": (M, N), "p": (1, 0)},
        {"x": "T[n]", "a": (K, M, N), "p": (1, 0, 2)},
        {"x": "T[]", "a": (M, N), "p": (1, 0)},
    ],
    alone=True,
)
def transpose_before_broadcast(x: Tensor, a: Shape, p: Perm) -> Tensor | None:
    """transpose moves before a broadcast, where there are fewer elements."""
    missing = len(a) - x.ndim
    order = [axis - missing for axis in p if axis >= missing]
    first = next((i for i, axis in enumerate(p) if axis >= missing), len(p))
    if any(axis < missing for axis in p[first:]):
        return None  # it would take a reshape as well
    return broadcast_to(permuted(x, order), shape=tuple(a[axis] for axis in p))


@rewrite(
    lambda a, v, t, s: reshape(full(shape=a, value=v, dtype=t), shape=s),
    samples=[{"a": (M, N), "v": 1, "t": "T", "s": (N, M)}],
)
def reshape_full(v: object, t: DType, s: Shape) -> Tensor:
    """reshape of full is full."""
    return full(shape=s, value=v, dtype=t)  # pyright: ignore[reportArgumentType]


@rewrite(
    lambda a, v, t, s: broadcast_to(full(shape=a, value=v, dtype=t), shape=s),
    samples=[{"a": (N,), "v": 1, "t": "T", "s": (M, N)}],
)
def broadcast_full(v: object, t: DType, s: Shape) -> Tensor:
    """broadcast_to of full is full."""
    return full(shape=s, value=v, dtype=t)  # pyright: ignore[reportArgumentType]


@rewrite(
    lambda a, v, t, p: transpose(full(shape=a, value=v, dtype=t), perm=p),
    samples=[{"a": (M, N), "v": True, "t": "i1", "p": (1, 0)}],
)
def transpose_full(a: Shape, v: object, t: DType, p: Perm) -> Tensor:
    """transpose of full is full."""
    return full(shape=tuple(a[i] for i in p), value=v, dtype=t)  # pyright: ignore[reportArgumentType]


@rewrite(lambda x: stop_gradient(x), samples=[{"x": "T[*]"}])
def drop_stop_gradient(x: Tensor) -> Tensor:
    """stop_gradient has no effect in a forward program."""
    return x
