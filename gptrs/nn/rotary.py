"""Rotary position embeddings: frequencies of every ``rope_type``, and tables of cosines and sines.

Pair i of a head of which ``size`` elements are rotated turns by position · θ^(−2i / size). Scalings
for texts longer than those of the training change these frequencies, some of them by the length of
the text. Frequencies are computed in f64 and rounded to f32 once. Source: Su et al.,
arXiv:2104.09864; the scalings name theirs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.errors import LoadError
from gptrs.ir.dims import DimLike
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import f32, si32
from gptrs.lazy_dataclass import dataclass

Frequencies: TypeAlias = tuple[float, ...]
_Floats: TypeAlias = NDArray[np.float64]

_COMMON = frozenset(["rope_type", "type", "rope_theta", "partial_rotary_factor"])
_OPTIONS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "yarn": (
        *("factor", "attention_factor", "beta_fast", "beta_slow"),
        *("mscale", "mscale_all_dim", "truncate"),
    ),
    "longrope": ("factor", "attention_factor", "short_factor", "long_factor"),
}
"""The options of each ``rope_type`` beside the common ones and the length of training texts."""
_ORIGINAL = "original_max_position_embeddings"


@dataclass(frozen=True)
class Rope:
    """The frequencies of a kind of layer, radians per position, one per pair of elements.

    ``long`` replaces them in texts of more than ``original`` tokens. With ``growth`` they fall with
    the length of such texts (dynamic NTK). ``scale`` multiplies cosines and sines.
    """

    frequencies: Frequencies
    scale: float = 1.0
    original: int = 0
    long: Frequencies | None = None
    growth: float | None = None

    @property
    def size(self) -> int:
        """How many elements of a head are rotated; those after them are not."""
        return 2 * len(self.frequencies)

    @property
    def longest_in_chunks(self) -> int:
        """The longest text whose tokens are rotated as when the text was shorter."""
        return sys.maxsize if self.long is None and self.growth is None else self.original

    def tables(self, positions: Tensor, lengths: Tensor | DimLike) -> tuple[Tensor, Tensor]:
        """Cosines and sines [batch, 1, tokens, size / 2] of positions [batch, tokens] in texts of
        ``lengths`` tokens, [batch] or one number."""
        angles = ptir.cast(positions, dtype=f32)[:, None, :, None] * self._frequencies(lengths)
        return ptir.cos(angles) * self.scale, ptir.sin(angles) * self.scale

    def _frequencies(self, lengths: Tensor | DimLike) -> Tensor:
        """[size / 2], or [batch, 1, 1, size / 2] where they depend on the length of the text."""
        plain = ptir.tensor(np.array(self.frequencies, np.float32))
        if self.long is None and self.growth is None:
            return plain
        texts = (ptir.zeros((1,), dtype=si32) + lengths).reshape(-1, 1, 1, 1)
        if self.long is not None:
            long = ptir.tensor(np.array(self.long, np.float32))
            return ptir.where(texts > self.original, long, plain)
        assert self.growth is not None
        most = ptir.cast(ptir.maximum(texts, self.original), dtype=f32)
        grown = most * (self.growth / self.original) - (self.growth - 1.0)
        powers = (np.arange(0, self.size, 2) / (2 - self.size)).astype(np.float32)
        return plain * ptir.pow(grown, ptir.tensor(powers))


def rope_of(options: Mapping[str, Any], head_size: int, context: int) -> Rope:
    """The frequencies by the entry ``rope_parameters`` of a configuration (or ``rope_scaling``,
    with ``rope_theta``), for heads of ``head_size`` elements and a ``context`` of positions.

    Raises `LoadError` for an option that is not known, missing, or not a number.
    """
    kind = options.get("rope_type", options.get("type", "default"))
    kind = "longrope" if kind == "su" else kind
    if kind not in _OPTIONS:
        raise LoadError(f"rope_type is {kind!r}, expected one of {', '.join(_OPTIONS)}")
    allowed = {*_COMMON, *_OPTIONS[kind], _ORIGINAL}
    if unknown := sorted(set(options) - allowed):
        raise LoadError(
            f"rope_parameters has an option {unknown[0]!r}, which is not known for {kind!r}",
            fix="remove it if it changes nothing",
        )
    read = _Options(kind, options)
    size = int(head_size * read.number("partial_rotary_factor", 1.0))
    if size < 2 or size % 2:
        raise LoadError(
            f"partial_rotary_factor rotates {size} of {head_size} elements, expected pairs"
        )
    theta = read.number("rope_theta", 10000.0)
    plain = theta ** (-np.arange(0, size, 2) / size)
    return _KINDS[kind](read, plain, theta, context)


@dataclass(frozen=True)
class _Options:
    """Options with checks: numbers are finite and positive."""

    kind: str
    entries: Mapping[str, Any]

    def number(self, name: str, default: float | None = None) -> float:
        value = self.entries.get(name)
        value = default if value is None else value
        if value is None:
            raise LoadError(f"rope_parameters of {self.kind!r} has no {name}")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value < math.inf:
            raise LoadError(f"rope_parameters: {name} is {value!r}, expected a positive number")
        return float(value)

    def given(self, name: str) -> float | None:
        return None if self.entries.get(name) is None else self.number(name)

    def numbers(self, name: str, count: int) -> _Floats:
        value = self.entries.get(name)
        if not isinstance(value, tuple | list) or len(value) != count:  # pyright: ignore[reportUnknownArgumentType]
            raise LoadError(f"rope_parameters: {name} is no list of {count} numbers")
        array = np.array(value, np.float64)
        if not (np.isfinite(array) & (array > 0)).all():
            raise LoadError(f"rope_parameters: {name} holds a number that is not positive")
        return array

    def original(self, context: int) -> int:
        return int(self.number(_ORIGINAL, context))


def _rounded(frequencies: _Floats) -> Frequencies:
    return tuple(frequencies.astype(np.float32).tolist())


def _default(read: _Options, plain: _Floats, theta: float, context: int) -> Rope:
    return Rope(_rounded(plain))


def _linear(read: _Options, plain: _Floats, theta: float, context: int) -> Rope:
    """Positions divided by ``factor``. Source: Chen et al., arXiv:2306.15595."""
    return Rope(_rounded(plain / read.number("factor")))


def _dynamic(read: _Options, plain: _Floats, theta: float, context: int) -> Rope:
    """A base that grows with the text: "dynamic NTK", Peng et al., arXiv:2309.00071, appendix."""
    if len(plain) < 2:
        raise LoadError("rope_type 'dynamic' needs more than 2 rotated elements of a head")
    return Rope(_rounded(plain), original=context, growth=read.number("factor"))


def _llama3(read: _Options, plain: _Floats, theta: float, context: int) -> Rope:
    """Low frequencies divided by ``factor``, and a smooth transition to high ones. Source: The
    Llama 3 herd of models, arXiv:2407.21783, and the reference code of Llama 3.1."""
    factor, original = read.number("factor"), read.original(context)
    low, high = read.number("low_freq_factor"), read.number("high_freq_factor")
    turns = original * plain / (2 * math.pi)  # of a pair, over the texts of the training
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0) if high != low else turns > low
    return Rope(_rounded((1 - smooth) * plain / factor + smooth * plain))


def _yarn(read: _Options, plain: _Floats, theta: float, context: int) -> Rope:
    """Interpolation of slow pairs alone, with a ramp, and hotter attention. Source: Peng et al.,
    arXiv:2309.00071."""
    original = read.original(context)
    factor = read.number("factor", context / original)
    size = 2 * len(plain)

    def pair(turns: float) -> float:
        """Which pair turns so often over the texts of the training."""
        return size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = pair(read.number("beta_fast", 32.0)), pair(read.number("beta_slow", 1.0))
    if read.entries.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    ramp = np.clip((np.arange(len(plain)) - low) / max(high - low, 0.001), 0.0, 1.0)
    scale = read.given("attention_factor")
    if scale is None:
        above, below = read.entries.get("mscale"), read.entries.get("mscale_all_dim")
        scale = _temperature(factor, 1.0)
        if above and below:
            scale = _temperature(factor, above) / _temperature(factor, below)
    return Rope(_rounded(plain * (1 - ramp) + plain / factor * ramp), scale)


def _temperature(factor: float, weight: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _longrope(read: _Options, plain: _Floats, theta: float, context: int) -> Rope:
    """A divisor for each pair, one list for short and one for long texts. Source: Ding et al.,
    arXiv:2402.13753."""
    original = read.original(context)
    factor = read.number("factor", context / original)
    short, long = (read.numbers(f"{name}_factor", len(plain)) for name in ("short", "long"))
    scale = read.given("attention_factor")
    if scale is None:
        scale = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    return Rope(_rounded(plain / short), scale, original, _rounded(plain / long))


_KINDS: dict[str, Callable[[_Options, _Floats, float, int], Rope]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
}
