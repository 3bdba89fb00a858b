"""Functions known by samples: interp, gradient, trapezoid, convolve; polynomials; covariances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, same, same_shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axes, normal_axis
from gptrs.numpy_api.effects import check
from gptrs.numpy_api.function import alike, as_tensor, public, tensor_of
from gptrs.numpy_api.joining import concat, stack
from gptrs.numpy_api.manipulation import flip
from gptrs.numpy_api.padding import pad
from gptrs.numpy_api.searching import searchsorted
from gptrs.numpy_api.statistics import as_float

__all__ = [
    "convolve",
    "corrcoef",
    "correlate",
    "cov",
    "cumulative_trapezoid",
    "gradient",
    "interp",
    "polyval",
    "trapezoid",
    "vander",
]

Mode = Literal["full", "same", "valid"]

MANY_TAPS = 256
"""Rows of up to so many taps are filtered by one fused loop, whose code grows with their number;
longer ones by a convolution, which takes several times as long for each tap."""


@public
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Tensor:
    """The value at ``x`` of the lines through the points (xp, fp), whose ``xp`` rises; outside of
    them ``left`` and ``right``, or the values at the ends. With ``period`` the points repeat, and
    may be in any order."""
    at, places, values = map(as_float, alike(x, xp, fp))
    if period is not None:
        at, places = at % abs(period), places % abs(period)
        places, order = OPS["sort"](places, axis=0)
        values = OPS["take"](values, order)
        places = concat([places[-1:] - abs(period), places, places[:1] + abs(period)])
        values = concat([values[-1:], values, values[:1]])
    if places.ndim != 1 or values.shape != places.shape:
        raise ShapeError(
            f"interp: xp and fp have shapes {list(places.shape)} and {list(values.shape)},"
            " expected one length"
        )
    last = places.shape[0] - 1
    highest = last if isinstance(last, Dim) else max(last, 1)
    after = OPS["clamp"](searchsorted(places, at, side="right"), 1, highest)
    before, after = after - 1, OPS["minimum"](after, last)
    x0, x1 = OPS["take"](places, before), OPS["take"](places, after)
    y0, y1 = OPS["take"](values, before), OPS["take"](values, after)
    slope = (y1 - y0) / OPS["select"](x1 == x0, 1, x1 - x0)
    inside = OPS["select"](at == places[-1], values[-1], y0 + (at - x0) * slope)
    first = values[0] if left is None else left
    beyond = values[-1] if right is None else right
    return OPS["select"](at < places[0], first, OPS["select"](at > places[-1], beyond, inside))


@public
def gradient(
    f: Any,
    *varargs: Any,
    axis: int | tuple[int, ...] | None = None,
    edge_order: int = 1,
    spacing: Any = None,
) -> Any:
    """The derivative along each ``axis`` (a list where there are several) by central differences,
    one-sided at the ends: of order ``edge_order``, 1 or 2.

    ``varargs`` are distances of the samples: none (1), one number for all axes, or one for each: a
    number, or the places as a row. ``spacing`` is torch's name for them.
    """
    if spacing is not None:
        several = isinstance(spacing, list | tuple)
        varargs = tuple(cast("Sequence[Any]", spacing)) if several else (spacing,)
    values = as_float(f)
    axes = normal_axes(axis, values.ndim)
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order is {edge_order}, expected 1 or 2")
    given = varargs or (1,)
    spacings = given * len(axes) if len(given) == 1 else given
    if len(spacings) != len(axes):
        raise ArgumentError(
            f"gradient: {len(spacings)} distances for {len(axes)} axes, expected one for each"
        )
    slopes = [_slope(values, h, i, edge_order) for i, h in zip(axes, spacings, strict=True)]
    return slopes[0] if len(slopes) == 1 else slopes


def _slope(f: Tensor, spacing: Any, axis: int, order: int) -> Tensor:
    if not isinstance(f.shape[axis], Dim) and f.shape[axis] < order + 1:
        raise ShapeError(
            f"gradient: axis {axis} has {f.shape[axis]} samples, expected {order + 1} at least"
        )

    def part(start: int | None, stop: int | None) -> Tensor:
        return f[(slice(None),) * axis + (slice(start, stop),)]

    places = as_tensor(spacing)
    if places.ndim == 0:
        h = tensor_of(spacing, f.dtype)
        middle = (part(2, None) - part(None, -2)) / (h * 2)
        if order == 1:
            low, high = (part(1, 2) - part(0, 1)) / h, (part(-1, None) - part(-2, -1)) / h
        else:
            low = (part(1, 2) * 4 - part(0, 1) * 3 - part(2, 3)) / (h * 2)
            high = (part(-1, None) * 3 - part(-2, -1) * 4 + part(-3, -2)) / (h * 2)
        return concat([low, middle, high], axis)
    if isinstance(spacing, list | tuple):
        places = tensor_of(spacing, f.dtype)
    widths = as_float(places)[1:] - as_float(places)[:-1]
    widths = widths.astype(f.dtype).reshape([-1 if i == axis else 1 for i in range(f.ndim)])

    def width(start: int | None, stop: int | None) -> Tensor:
        return widths[(slice(None),) * axis + (slice(start, stop),)]

    a, b = width(None, -1), width(1, None)
    middle = (
        part(None, -2) * (-b / (a * (a + b)))
        + part(1, -1) * ((b - a) / (a * b))
        + part(2, None) * (a / (b * (a + b)))
    )
    if order == 1:
        low = (part(1, 2) - part(0, 1)) / width(0, 1)
        high = (part(-1, None) - part(-2, -1)) / width(-1, None)
        return concat([low, middle, high], axis)
    a, b = width(0, 1), width(1, 2)
    low = (
        part(0, 1) * (-(a * 2 + b) / (a * (a + b)))
        + part(1, 2) * ((a + b) / (a * b))
        - part(2, 3) * (a / (b * (a + b)))
    )
    a, b = width(-2, -1), width(-1, None)
    high = (
        part(-3, -2) * (b / (a * (a + b)))
        - part(-2, -1) * ((a + b) / (a * b))
        + part(-1, None) * ((b * 2 + a) / (b * (a + b)))
    )
    return concat([low, middle, high], axis)


@public
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """∫ y along ``axis`` by the trapezoidal rule, at the places ``x`` or at distances ``dx``."""
    values = as_float(y)
    axis = normal_axis(axis, values.ndim)
    both, widths = _strips(values, x, axis)
    if widths is None:
        return OPS["reduce_sum"](both, axes=axis) * (dx / 2)
    return OPS["reduce_sum"](widths * both, axes=axis) / 2


@public
def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Tensor:
    """∫ y up to each place but the first along ``axis`` by the trapezoidal rule; ``initial`` is put
    before, for the first."""
    values = as_float(y)
    axis = normal_axis(axis, values.ndim)
    both, widths = _strips(values, x, axis)
    found = OPS["cumsum"](both * (dx / 2) if widths is None else widths * both / 2, axis=axis)
    if initial is None:
        return found
    shape = tuple(1 if i == axis else n for i, n in enumerate(values.shape))
    return concat([OPS["full"](shape=shape, value=initial, dtype=found.dtype), found], axis)


def _strips(values: Tensor, x: Any, axis: int) -> tuple[Tensor, Tensor | None]:
    """The sums of neighbours along ``axis``, and the distances of the places ``x``."""
    keys = (slice(None),) * axis
    both = values[(*keys, slice(1, None))] + values[(*keys, slice(None, -1))]
    if x is None:
        return both, None
    places = as_float(x)
    if places.ndim == 1:
        widths = places[1:] - places[:-1]
        return both, widths.reshape([-1 if i == axis else 1 for i in range(values.ndim)])
    return both, places[(*keys, slice(1, None))] - places[(*keys, slice(None, -1))]


def _filtered(a: Tensor, v: Tensor, mode: Mode) -> Tensor:
    """Σₖ a[n + k] · v[k] over the places at which ``mode`` has the rows overlap."""
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"mode is {mode!r}, expected 'full', 'same' or 'valid'")
    taps, extent = v.shape[0], a.shape[0]
    assert isinstance(taps, int)
    if mode != "full" and isinstance(extent, Dim):
        length = as_tensor(extent)
        check(length >= taps, "{} elements are fewer than the {} of the other row", length, taps)
    ends = {
        "full": (taps - 1, taps - 1),
        "same": (taps // 2, (taps - 1) // 2),
        "valid": (0, 0),
    }[mode]
    if taps > MANY_TAPS:
        image, weight = a.reshape(1, 1, -1, 1), v.reshape(1, taps, 1, 1)
        return OPS["conv2d"](image, weight, padding=((0, 0), ends)).reshape(-1)
    a = pad(a, (ends,))
    windows = a.shape[0] - taps + 1
    total: Tensor = a[:windows] * v[0]
    for k in range(1, taps):
        total = total + a[k : k + windows] * v[k]
    return total


def _rows(name: str, a: Any, v: Any) -> tuple[Tensor, Tensor]:
    rows = alike(a, v)
    for row in rows:
        if row.ndim != 1 or (not isinstance(row.shape[0], Dim) and row.shape[0] == 0):
            raise ShapeError(
                f"{name}: an operand has shape {list(row.shape)}, expected a row of elements"
            )
    if all(isinstance(row.shape[0], Dim) for row in rows):
        raise ShapeError(
            f"{name}: both operands have symbolic lengths, {rows[0].shape[0]} and"
            f" {rows[1].shape[0]}; one has to be known"
        )
    return rows[0], rows[1]


def _is_shorter(a: Tensor, v: Tensor) -> bool:
    """Whether the first row is the shorter one. A symbolic length is taken for the longer one, and
    checked where that matters."""
    first, second = a.shape[0], v.shape[0]
    if isinstance(first, Dim) or isinstance(second, Dim):
        return isinstance(second, Dim)
    return first < second


@public
def convolve(a: Any, v: Any, mode: Mode = "full") -> Tensor:
    """Σₖ a[n − k] · v[k] of two rows: of length n + m − 1 ("full"), max(n, m) ("same"), or where
    they overlap wholly ("valid")."""
    x, taps = _rows("convolve", a, v)
    if _is_shorter(x, taps):
        x, taps = taps, x
    return _filtered(x, flip(taps), mode)


@public
def correlate(a: Any, v: Any, mode: Mode = "valid") -> Tensor:
    """Σₖ a[n + k] · v̄[k] of two rows, with the lengths of `convolve`."""
    x, taps = _rows("correlate", a, v)
    taps = OPS["conj"](taps) if taps.dtype.is_complex else taps
    if _is_shorter(x, taps):
        return flip(_filtered(taps, x, mode))
    return _filtered(x, taps, mode)


@public
def polyval(p: Any, x: Any) -> Tensor:
    """p[0] · xⁿ⁻¹ + ... + p[n − 1], by Horner's rule."""
    coefficients, at = alike(p, x)
    value: Tensor = at * 0
    for i in range(coefficients.shape[0]):
        value = value * at + coefficients[i]
    return value


@public
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """The powers of a row as columns: xᴺ⁻¹ ... x⁰, or rising."""
    row = as_tensor(x)
    row = row.astype("si64") if row.dtype.is_bool else row
    count = row.shape[0] if N is None else N
    if count == 0:
        return OPS["full"](shape=(*row.shape, 0), value=0, dtype=row.dtype)
    powers = [OPS["full"](shape=row.shape, value=1, dtype=row.dtype)]
    for _ in range(1, count):
        powers.append(powers[-1] * row)
    return stack(powers[:count] if increasing else powers[:count][::-1], 1)


def _observations(m: Any, y: Any, rowvar: bool) -> Tensor:
    """Variables as rows, observations as columns."""

    def variables(x: Any) -> Tensor:
        table = as_float(x)
        if table.ndim > 2:
            raise ShapeError(f"cov: expected at most 2 axes, found shape {list(table.shape)}")
        if table.ndim < 2:
            return table.reshape(1, -1)
        return table if rowvar or same(table.shape[0], 1) else OPS["transpose"](table, perm=(1, 0))

    return variables(m) if y is None else concat([variables(m), variables(y)], 0)


@public
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: object = None,
    correction: int | None = None,
) -> Tensor:
    """The covariances of the variables in the rows of ``m`` (its columns without ``rowvar``), over
    n − 1 observations, or n if ``bias``; ``ddof``, torch's ``correction``, says how many fewer
    than n.

    ``fweights`` count observations, ``aweights`` weigh them, as in NumPy.
    """
    table = _observations(m, y, rowvar)
    table = table if dtype is None else table.astype(dtype)
    ddof = correction if ddof is None else ddof
    fewer = (0 if bias else 1) if ddof is None else ddof
    weights = None if aweights is None else as_float(aweights).astype(table.dtype)
    if fweights is not None:
        counts = tensor_of(fweights, table.dtype)
        weights = counts if weights is None else counts * weights
    if weights is None:
        centred = table - OPS["mean"](table, axes=1, keepdims=True)
        scaled, count = centred, table.shape[1] - fewer
    else:
        total = OPS["reduce_sum"](weights)
        centred = table - OPS["reduce_sum"](table * weights, axes=1, keepdims=True) / total
        scaled, count = centred * weights, total
        if fewer and aweights is None:
            count = total - fewer
        elif fewer:
            squared = weights * as_float(aweights).astype(table.dtype)
            count = total - OPS["reduce_sum"](squared) * fewer / total
    turned = OPS["transpose"](centred, perm=(1, 0))
    product = scaled @ (OPS["conj"](turned) if turned.dtype.is_complex else turned)
    result = product / count
    return result.reshape(()) if same_shape(result.shape, (1, 1)) else result


@public
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Tensor:
    """The correlations of the variables in the rows of ``x``, within [−1, 1]."""
    covariances = cov(x, y, rowvar)
    if not covariances.ndim:
        return covariances / covariances
    count = covariances.shape[0]
    deviations = OPS["sqrt"](covariances.reshape(-1)[:: count + 1])
    scaled = covariances / deviations[:, None] / deviations[None, :]
    return OPS["clamp"](scaled, -1, 1)
