"""Register tiles of windows: functions that compute some outputs of a row (`window_loops`).

    tile (n neighbouring outputs, windows not cut left or right):    edge (one output):
    for lanes of channels:                                           for 4 vectors of channels:
        total[n] = start                        # registers              total[4] = start
        for row of the window:                                           for row, for tap inside:
            w[taps] = weights of the row        # registers                  total = body(total, x)
            for column read by any output:                               store finish(total)
                v = x[row, column]              # loaded once
                for output that reads it:
                    total[output] = body(total[output], v, w[tap])
        store finish(total)

In both, each output is one chain over the elements inside the image, in row-major order; where
there are weights, zeros times those of the elements outside come first. Where all weights are
finite this changes no bit and is left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I64, POINTER, Function, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.lazy_dataclass import dataclass

_EDGE = 4  # vectors of channels done at once at an edge: as many chains as hide their latency
_OUTPUTS = (8, 4, 2, 1)  # of tiles: more gain nothing
_FEWEST = 4  # of the largest tile, that tiles are worth their code
_WIDEST = 16  # window that is written out tap by tap

Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """Parameters of a window kernel's code besides the vector level and the body."""

    size: Pair
    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)

    @property
    def label(self) -> str:
        """A part of the names of its kernels."""
        pairs = zip("ksd", (self.size, self.strides, self.dilation), strict=True)
        return "_".join(f"{letter}{a}x{b}" for letter, (a, b) in pairs)


def inside(f: Function, start: Any, extent: Any, size: Any, dilation: Any) -> tuple[Any, Any]:
    """The range of ``size`` elements, ``dilation`` apart, of a window that begins at ``start``,
    that lie between 0 and ``extent``: from, to; equal if none does."""
    begin = f.least(f.ceiling(f.positive(f.neg(start)), dilation), size)
    end = f.least(f.ceiling(f.positive(f.sub(extent, start)), dilation), size)
    return begin, f.select(f.icmp_signed("<", end, begin), begin, end)


class Given(NamedTuple):
    """Arguments of tile and edge functions: pointers to first element, tap, bias, result; sizes."""

    x: Any
    result: Any
    weight: Any
    bias: Any
    zeros: Any  # rows of the window that zeros are combined with: all, or none as they do nothing
    above: Any  # rows of the window, above those inside the image
    rows: Any  # of the window inside the image
    before: Any  # taps of a row of the window, to the left of those inside the image
    taps: Any  # of a row of the window inside the image
    row_step: Any  # from one row of the window to the next, in elements of x
    stride: Any  # from one pixel to the next
    count: Any  # of channels


class Place(NamedTuple):
    """The channels of a vector: the first one, and the mask."""

    channel: Any
    mask: Any


class Body(ABC):
    """How the elements of a window are combined."""

    name: ClassVar[str]
    start: ClassVar[float] = 0.0
    reads_weights: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """The name of its kernels, but for the window's."""
        return self.name

    @abstractmethod
    def combine(self, f: Function, total: Any, x: Any, weight: Any) -> Any:
        """``total`` with one more element, and its weight if the body reads weights."""

    @abstractmethod
    def finish(self, f: Function, given: Given, total: Any, place: Place) -> Any:
        """The result of a window."""


_PARAMETERS = (*[POINTER] * 4, *[I64] * 8)


def tile_sizes(isa: Isa, window: Window, body: Body) -> list[int]:
    """How many outputs tiles have: as many as registers hold besides a row of weights, an element
    and a spare, and smaller ones. None for a wide window: then all outputs are computed as those
    at the edges are."""
    width = window.size[1]
    free = isa.registers - 2 - (width if body.reads_weights else 0)
    if free < _FEWEST or width > _WIDEST:
        return []
    return [size for size in _OUTPUTS if size <= free]


def _vectors(f: Function, count: Any) -> Iterator[list[Place]]:
    """The vectors of ``count`` channels: some at once, then one by one, of which the last begins
    earlier than the one before ends; one with a mask if there are fewer channels than lanes.

    The body is written for each of these.
    """
    lanes = f.isa.lanes
    step, few = i64(_EDGE * lanes), f.icmp_signed("<", count, i64(lanes))
    first = f.sub(count, f.urem(count, step))
    with f.loop(i64(0), first, step) as loop:
        yield [Place(f.add(loop.index, i64(i * lanes)), None) for i in range(_EDGE)]
    with f.loop(first, f.select(few, i64(0), count), i64(lanes)) as loop:
        yield [Place(f.least(loop.index, f.sub(count, i64(lanes))), None)]
    with f.if_then(few):
        yield [Place(i64(0), f.mask(count))]


def _part(module: Any, isa: Isa, name: str) -> tuple[Function, Given]:
    f = Function.part(module, isa, name, *_PARAMETERS)
    given = Given(*f.arguments)
    given.result.add_attribute("noalias")
    return f, given


def _starts(
    f: Function, window: Window, body: Body, given: Given, places: list[Place]
) -> list[Any]:
    """Initial values of the chains of ``places``: the start of the body, combined with zeros times
    the weights of the elements outside the image, of which an infinite one or NaN gives NaN."""
    starts: list[Any] = [ir.Constant(f.vector, [body.start] * f.isa.lanes) for _ in places]
    if not body.reads_weights:
        return starts
    width = window.size[1]
    zero = ir.Constant(f.vector, [0.0] * f.isa.lanes)
    with f.loop(i64(0), given.zeros, carried=starts) as row:
        # One comparison without sign for both bounds
        number = f.sub(row.index, given.above)
        inside = f.select(f.icmp_unsigned("<", number, given.rows), given.taps, i64(0))
        weight = f.at(given.weight, f.mul(number, f.mul(given.stride, i64(width))))
        outside = f.sub(i64(width), inside)
        with f.loop(i64(0), outside, carried=row.values) as tap:
            passed = f.select(f.icmp_signed("<", tap.index, given.before), i64(0), inside)
            column = f.sub(f.add(tap.index, passed), given.before)
            at = f.at(weight, f.mul(column, given.stride))
            for i, (channel, mask) in enumerate(places):
                factor = f.read(f.at(at, channel), mask=mask)
                tap.values[i] = body.combine(f, tap.values[i], zero, factor)
            end: Any = f.block
        _keep_short(f, end)
        row.values = tap.values
    return row.values


def tile_part(module: Any, isa: Isa, window: Window, body: Body, outputs: int) -> Any:
    """tile(given): so many neighbouring outputs, whose windows lack no column, of at least as many
    channels as a vector has lanes; the last vector overlaps the one before.

    Each element of a row is read once, for all outputs that have it in their windows.
    """
    f, given = _part(module, isa, f"{body.name}{outputs}")
    width, stride, dilation = window.size[1], window.strides[1], window.dilation[1]
    readers: dict[int, list[Pair]] = {}  # (output, tap) by column
    for output in range(outputs):
        for tap in range(width):
            readers.setdefault(output * stride + tap * dilation, []).append((output, tap))
    given = given._replace(before=i64(0), taps=i64(width))
    with f.loop(i64(0), given.count, i64(isa.lanes)) as loop:
        place = Place(f.least(loop.index, f.sub(given.count, i64(isa.lanes))), None)
        x, weight = (f.at(pointer, place.channel) for pointer in (given.x, given.weight))
        starts = _starts(f, window, body, given, [place]) * outputs
        with f.loop(i64(0), given.rows, carried=starts) as row:
            at = f.at(x, f.mul(row.index, given.row_step))
            taps: list[Any] = [None] * width
            if body.reads_weights:
                here = f.mul(row.index, f.mul(given.stride, i64(width)))
                for tap in range(width):
                    at_tap = f.at(weight, f.add(here, f.mul(given.stride, i64(tap))))
                    taps[tap] = f.read(at_tap)
            for column in sorted(readers):
                value = f.read(f.at(at, f.mul(given.stride, i64(column))))
                for output, tap in readers[column]:
                    total = row.values[output]
                    row.values[output] = body.combine(f, total, value, taps[tap])
            end: Any = f.block
        _keep_short(f, end)
        for output, total in enumerate(row.values):
            result = f.at(given.result, f.add(place.channel, f.mul(given.stride, i64(output))))
            f.write(body.finish(f, given, total, place), result)
    f.ret_void()
    return f.made


def edge_part(module: Any, isa: Isa, window: Window, body: Body) -> Any:
    """edge(given): one output, of whose window any part may be inside the image."""
    f, given = _part(module, isa, f"{body.name}_edge")
    tap_step = f.mul(given.stride, i64(window.dilation[1]))
    weight_step = f.mul(given.stride, i64(window.size[1]))
    for places in _vectors(f, given.count):
        starts = _starts(f, window, body, given, places)
        with f.loop(i64(0), given.rows, carried=starts) as row:
            x = f.at(given.x, f.mul(row.index, given.row_step))
            weight = f.at(given.weight, f.mul(row.index, weight_step))
            with f.loop(i64(0), given.taps, carried=row.values) as tap:
                at = f.at(x, f.mul(tap.index, tap_step))
                weight_at = f.at(weight, f.mul(tap.index, given.stride))
                for i, (channel, mask) in enumerate(places):
                    value = f.read(f.at(at, channel), mask=mask)
                    factor: Any = None
                    if body.reads_weights:
                        factor = f.read(f.at(weight_at, channel), mask=mask)
                    tap.values[i] = body.combine(f, tap.values[i], value, factor)
                end: Any = f.block
            _keep_short(f, end)
            row.values = tap.values
        for total, place in zip(row.values, places, strict=True):
            value = body.finish(f, given, total, place)
            f.write(value, f.at(given.result, place.channel), place.mask)
    f.ret_void()
    return f.made


def _keep_short(f: Function, end: Any) -> None:
    """Disable unrolling of the loop that ends with the block ``end``: its body is long, and
    unrolling costs registers for addresses."""
    hint: Any = f.module.add_metadata([])
    # Self-referential, as LLVM's distinct loop metadata is.
    hint.operands = (hint, f.module.add_metadata(["llvm.loop.unroll.disable"]))
    end.terminator.set_metadata("llvm.loop", hint)
