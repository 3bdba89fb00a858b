"""Fourier transforms, products and equations whose arguments differ a little from torch's."""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs import ptir
from tests.support.op_info.row import NAMED, SUMMED, F, R, Row, unless

ANY = ("f32", "f64", "si64", "ui8", "i1")
INEXACT = {"special": False, "differs": "one NaN or infinity reaches all"}


def _transform(name: str) -> Callable[..., Any]:
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        several = name.endswith(("2", "n"))
        for place, key in enumerate(("s" if several else "n", "dim")):
            given = args[place] if len(args) > place else kwargs.get(key)
            unless(several and isinstance(given, int), "one size or axis of several")
        return getattr(ptir.fft, name)(x, *args, **kwargs)

    return call


def _function(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: getattr(ptir, name)(*args, **kwargs)


def _blended(name: str) -> Callable[..., Any]:
    """addmv and the like, whose factors of integers torch makes whole."""

    def call(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        return getattr(ptir, name)(x, a, b, beta=beta, alpha=alpha)

    return call


def _divided(mode: str) -> Callable[..., Any]:
    def call(x: Any, y: Any, *, rounding_mode: str) -> Any:
        unless(rounding_mode != mode, "another rounding")
        return ptir.floor_divide(x, y) if mode == "floor" else ptir.trunc(x / y)

    return call


def _solved(a: Any, b: Any, *, left: bool = True) -> Any:
    unless(not left or 0 in (*a.shape, *b.shape), "from the right, or nothing to solve")
    unless(b.ndim > 1 and b.shape == a.shape[:-1], "a batch of rows, which NumPy takes as a matrix")
    return ptir.linalg.solve(a, b)


def _contracted(a: Any, b: Any, dims: Any = 2, **kwargs: Any) -> Any:
    dims = kwargs.get("dims", dims)
    if isinstance(dims, tuple):
        pairs = zip(*dims, strict=True)
        unless(any(a.shape[i] != b.shape[j] for i, j in pairs), "one element for a whole axis")
    return ptir.tensordot(a, b, dims)


def _einsum(operands: Any, equation: str) -> Any:
    return ptir.einsum(equation, *operands)


def _vector_norm(x: Any, *args: Any, **kwargs: Any) -> Any:
    unless(not x.ndim, "an axis of a scalar")
    return ptir.linalg.vector_norm(x, *args, **kwargs)


def _squeezed(x: Any, dim: Any) -> Any:
    unless(not x.ndim, "an axis of a scalar")
    return x.squeeze(tuple(d for d in dim if x.shape[d] == 1))


def _repeated(x: Any, sizes: Any) -> Any:
    unless(not sizes, "no counts")
    return x.tile(sizes)


def _indexed(x: Any, index: Any) -> Any:
    unless(isinstance(index, tuple), "a list, or a tuple: samples hold tuples alone")
    return x[index]


def _matrix_norm(
    x: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, dtype: Any = None
) -> Any:
    unless(dtype is not None or tuple(dim) != (-2, -1), "other axes, or another dtype")
    return ptir.linalg.matrix_norm(x, ord=ord, keepdims=keepdim)


def _rooted(x: Any) -> Any:
    sign, size = ptir.linalg.slogdet(x)
    return ptir.where(sign > 0, size, ptir.where(sign == 0, size, float("nan")))


_FOURIER = (
    *("fft", "hfft", "ihfft", "ifft", "irfft", "rfft"),
    *("fft2", "fftn", "ifft2", "ifftn", "irfft2", "irfftn", "rfft2", "rfftn"),
)

ROWS: tuple[Row, ...] = (
    *(
        Row(f"fft.{name}", _transform(name), ANY, compiled=1, **INEXACT, **SUMMED)
        for name in _FOURIER
    ),
    *(Row(name, _blended(name), F, **SUMMED) for name in ("addmv", "addbmm", "baddbmm", "addr")),
    Row("lerp", _function("lerp"), special=False, differs="∞ − ∞", **SUMMED),
    Row("einsum", _einsum, F, **INEXACT, **SUMMED),
    Row("tensordot", _contracted, F, **INEXACT, **SUMMED),
    Row("logdet", _rooted, F, **INEXACT, **SUMMED),
    Row("linalg.solve", _solved, F, **INEXACT, **SUMMED),
    Row("linalg.vector_norm", _vector_norm, F, **SUMMED),
    Row("linalg.matrix_norm", _matrix_norm, F, **INEXACT, **SUMMED),
    Row(
        "linalg.diagonal",
        lambda x, offset=0, **k: ptir.diagonal(x, offset, k.get("dim1", -2), k.get("dim2", -1)),
        ANY,
    ),
    Row("norm", _function("norm"), F, **SUMMED),
    Row("norm.inf", _function("norm"), F),
    Row(
        "special.modified_bessel_i0",
        lambda x: ptir.i0(x),
        special=False,
        differs="NaN at ∞",
        **NAMED,
    ),
    Row(
        "special.i1",
        lambda x: ptir.modified_bessel_i1(x),
        special=False,
        differs="NaN at ∞",
        **NAMED,
    ),
    Row(
        "special.modified_bessel_i1",
        lambda x: ptir.modified_bessel_i1(x),
        special=False,
        differs="NaN at ∞",
        **NAMED,
    ),
    *(
        Row(
            f"special.{name}",
            _function(name),
            special=False,
            differs="infinite or NaN for subnormal numbers",
            **NAMED,
        )
        for name in (
            *("modified_bessel_k0", "modified_bessel_k1"),
            *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
        )
    ),
    Row("igamma", _function("igamma"), special=False, differs="outside of the domain", **SUMMED),
    Row("igammac", _function("igammac"), special=False, differs="outside of the domain", **SUMMED),
    Row("float_power", _function("float_power"), ("f64",), **NAMED),
    Row(
        "rsub",
        lambda x, y, *, alpha=1: y - x * alpha,
        R,
        special=False,
        ulps=2,
        magnitude=8,
        why="torch subtracts a product before it is rounded",
        differs="overflow of the product",
    ),
    Row("angle", _function("angle"), F, special=False, differs="the angle of −0"),
    Row("sgn", _function("sign"), R, special=False, differs="the sign of zeros and NaN"),
    Row("heaviside", _function("heaviside"), F, special=False, differs="NaN"),
    Row("fmax", _function("fmax"), R),
    Row("fmin", _function("fmin"), R),
    Row("max.binary", _function("maximum"), R),
    Row("min.binary", _function("minimum"), R),
    Row("logit", _function("logit"), F, **NAMED),
    *(Row(name, _function(name), ANY) for name in ("flip", "diagflat")),
    Row("reshape_as", lambda x, y: x.reshape_as(y), ANY),
    Row("view_as", lambda x, y: x.view_as(y), ANY),
    Row("expand_as", lambda x, y: x.expand_as(y), ANY),
    *(Row(name, lambda x, name=name: getattr(x, name), ANY) for name in ("H", "mH")),
    Row("meshgrid.list_of_tensors", lambda xs, **k: ptir.meshgrid(*xs, **k), ANY),
    *(
        Row(
            f"atleast_{n}d",
            lambda *xs, n=n: getattr(ptir, f"atleast_{n}d")(
                *(xs[0] if isinstance(xs[0], tuple) else xs)
            ),
            ANY,
        )
        for n in (1, 2, 3)
    ),
    Row("select", lambda x, dim, index: ptir.take(x, index, axis=dim), ANY),
    Row("split", lambda x, size, dim=0: x.split(size, dim), ANY),
    Row("split.list_args", lambda x, size, dim=0: x.split(size, dim), ANY),
    Row("squeeze.multiple", _squeezed, ANY),
    Row("repeat", _repeated, ANY),
    Row("take", _function("take"), ANY),
    Row("__getitem__", _indexed, ANY, compiled=0),
    Row(
        "__rdiv__",
        lambda x, y: y / x,
        F,
        ulps=2,
        magnitude=0,
        why="torch multiplies with the reciprocal",
        special=False,
        differs="denormals",
    ),
    Row("div.floor_rounding", _divided("floor"), F, special=False, differs="∞ and zeros"),
    Row("div.trunc_rounding", _divided("trunc"), F, special=False, differs="∞ and zeros"),
)
