"""Shapes and views: reshape, permute, slices, joining, padding, diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.ir.dims import Dim, DimLike, product
from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import UnsupportedError, aten, enter_all, ptir

Shape = Sequence[DimLike]


@aten("view", "reshape", "_unsafe_view", "_reshape_copy", "view_copy", "prims.reshape")
def reshape(x: Tensor, size: Shape) -> Tensor:
    """``x`` in another shape; one extent may be -1."""
    return ptir.reshape(x, shape=_without_minus_one(size, x.size))


def _without_minus_one(size: Shape, count: DimLike) -> tuple[DimLike, ...]:
    unknown = [isinstance(n, int) and n == -1 for n in size]
    if not any(unknown):
        return tuple(size)
    known = product(tuple(n for n, is_unknown in zip(size, unknown, strict=True) if not is_unknown))
    rest = count // known if isinstance(known, Dim) or known else 0
    return tuple(rest if u else n for n, u in zip(size, unknown, strict=True))


@aten("permute", "permute_copy")
def permute(x: Tensor, dims: Sequence[int]) -> Tensor:
    return ptir.transpose(x, perm=tuple(d % x.ndim for d in dims)) if x.ndim else x


@aten("transpose.int")
def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    return ptir.swapaxes(x, dim0, dim1) if x.ndim else x


@aten("t")
def t(x: Tensor) -> Tensor:
    return ptir.swapaxes(x, 0, 1) if x.ndim == 2 else x


@aten("expand", "expand_copy")
def expand(x: Tensor, size: Shape, implicit: bool = False) -> Tensor:
    """Broadcast; an extent of -1 stays as it is."""
    new = len(size) - x.ndim
    kept = [isinstance(n, int) and n == -1 for n in size]
    shape = tuple(
        x.shape[i - new] if k else n for i, (n, k) in enumerate(zip(size, kept, strict=True))
    )
    return ptir.broadcast_to(x, shape=shape)


@aten("unsqueeze")
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    return ptir.unsqueeze(x, dim)


@aten("squeeze.dim", "squeeze.dims", "squeeze", "squeeze_copy.dims")
def squeeze(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without those of the axes whose extent is 1."""
    if x.ndim == 0:
        return x
    given = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    named = {d % x.ndim for d in given}
    keep = [n for i, n in enumerate(x.shape) if i not in named or isinstance(n, Dim) or n != 1]
    return ptir.reshape(x, shape=tuple(keep))


@aten("slice.Tensor", "slice_copy.Tensor")
def slice_(
    x: Tensor,
    dim: int = 0,
    start: DimLike | None = None,
    end: DimLike | None = None,
    step: int = 1,
) -> Tensor:
    keys = [slice(None)] * x.ndim
    # Exported graphs write "to the end" as the greatest integer.
    last = None if isinstance(end, int) and end >= 2**62 else end
    keys[dim] = slice(start, last, step)
    return x[tuple(keys)]


@aten("select.int", "select_copy.int")
def select(x: Tensor, dim: int, index: int) -> Tensor:
    keys: list[Any] = [slice(None)] * x.ndim
    keys[dim] = index
    return x[tuple(keys)]


@aten("narrow", "narrow_copy")
def narrow(x: Tensor, dim: int, start: DimLike, length: DimLike) -> Tensor:
    return slice_(x, dim, start, start + length)


@aten("cat")
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Joined along an axis; empty tensors of rank 1 may stand among others of any rank."""
    kept = [x for x in tensors if x.shape != (0,)] or list(tensors[:1])
    return ptir.concatenate(kept, axis=dim) if len(kept) > 1 else kept[0]


@aten("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return ptir.stack(list(tensors), axis=dim)


@aten("split_with_sizes", "split_with_sizes_copy")
def split_with_sizes(x: Tensor, split_sizes: Shape, dim: int = 0) -> list[Tensor]:
    parts: list[Tensor] = []
    start: DimLike = 0
    for size in split_sizes:
        parts.append(slice_(x, dim, start, start + size))
        start = start + size
    return parts


@aten("split.Tensor", "split_copy.Tensor")
def split(x: Tensor, split_size: DimLike, dim: int = 0) -> list[Tensor]:
    extent = x.shape[dim]
    if isinstance(extent, Dim) or isinstance(split_size, Dim):
        count = extent // split_size
        if isinstance(count, Dim):
            raise UnsupportedError("a number of parts that is not known")
        return split_with_sizes(x, [split_size] * count, dim)
    starts = range(0, max(extent, 1), split_size or 1)
    return [slice_(x, dim, start, min(start + split_size, extent)) for start in starts]


@aten("unbind.int", "unbind_copy.int")
def unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    return list(ptir.unbind(x, dim))


@aten("repeat")
def repeat(x: Tensor, repeats: Sequence[int]) -> Tensor:
    shape = (1,) * (len(repeats) - x.ndim) + x.shape
    return ptir.tile(ptir.reshape(x, shape=shape), reps=tuple(repeats))


@aten("flip")
def flip(x: Tensor, dims: Sequence[int]) -> Tensor:
    return ptir.flip(x, axis=tuple(d % x.ndim for d in dims)) if x.ndim and len(dims) else x


@aten("roll")
def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    return ptir.roll(x, tuple(shifts), tuple(dims)) if len(dims) else ptir.roll(x, shifts[0])


@aten("diagonal", "diagonal_copy")
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    return ptir.diagonal(x, offset, dim1, dim2)


@aten("tril")
def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    return ptir.tril(x, diagonal)


@aten("triu")
def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    return ptir.triu(x, diagonal)


@aten("unfold", "unfold_copy")
def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    if x.ndim == 0:  # windows of one element, or of none
        return ptir.reshape(x, shape=(1,))[:size]
    return ptir.unfold(x, dimension, size, step)


@aten("constant_pad_nd")
def constant_pad(x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Padded from the last axis on; a negative width cuts off."""
    low, high = [0] * x.ndim, [0] * x.ndim
    for i in range(len(pad) // 2):
        low[-1 - i], high[-1 - i] = pad[2 * i], pad[2 * i + 1]
    keys = tuple(
        slice(max(-a, 0), n - max(-b, 0)) for a, b, n in zip(low, high, x.shape, strict=True)
    )
    if any(width < 0 for width in pad):
        x = x[keys]
    widths = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    value = int(value) if x.dtype.is_integer else value
    return ptir.pad(x, low=[a for a, _ in widths], high=[b for _, b in widths], value=value)


def _mirrored(mode: str) -> Any:
    def call(x: Tensor, padding: Sequence[int]) -> Tensor:
        return ptir.nn.pad(x, tuple(padding), mode=mode)

    return call


enter_all(
    {
        "reflection_pad1d reflection_pad2d reflection_pad3d": _mirrored("reflect"),
        "replication_pad1d replication_pad2d replication_pad3d": _mirrored("replicate"),
        "view_as_complex": ptir.view_as_complex,
        "view_as_real": ptir.view_as_real,
        "complex": ptir.complex,
        "real": ptir.real,
        "imag": ptir.imag,
    }
)


@aten("sym_size.int")
def sym_size(x: Tensor, dim: int) -> DimLike:
    return x.shape[dim]


@aten("sym_numel")
def sym_numel(x: Tensor) -> DimLike:
    return x.size


@aten("pixel_shuffle")
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    return ptir.pixel_shuffle(x, upscale_factor)


@aten("pixel_unshuffle")
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    return ptir.pixel_unshuffle(x, downscale_factor)


@aten("copy")
def copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """``source`` in the type of ``x``."""
    return ptir.broadcast_to(ptir.cast(source, dtype=x.dtype), shape=x.shape)


@aten("as_strided", "as_strided_copy")
def as_strided(x: Tensor, size: Shape, stride: Shape, storage_offset: DimLike | None = 0) -> Tensor:
    """Elements of a contiguous array at strides: a gather."""
    places: Any = storage_offset or 0
    for i, (n, by) in enumerate(zip(size, stride, strict=True)):
        shape = tuple(n if k == i else 1 for k in range(len(size)))
        places = places + ptir.ops.iota(shape=shape, axis=i, dtype=ptir.si64) * by
    flat = ptir.reshape(x, shape=(x.size,))
    if not isinstance(places, Tensor):
        return ptir.reshape(flat[places : places + 1], shape=())
    return ptir.take(flat, ptir.broadcast_to(places, shape=tuple(size)))
