"""Windows of m points, by the names of SciPy and of torch.

They are symmetric; with ``sym=False`` the first m points of one of m + 1, as for a Fourier
transform. Computed once in f64 when they are made, and constants of a program; f32 without a
``dtype``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError
from gptrs.ir.names import unknown_name
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, as_dtype
from gptrs.numpy_api.function import public

__all__ = [
    "barthann",
    "bartlett",
    "blackman",
    "blackmanharris",
    "bohman",
    "boxcar",
    "cosine",
    "exponential",
    "flattop",
    "gaussian",
    "general_cosine",
    "general_gaussian",
    "general_hamming",
    "get_window",
    "hamming",
    "hann",
    "kaiser",
    "lanczos",
    "nuttall",
    "parzen",
    "triang",
    "tukey",
]


def __getattr__(name: str) -> Any:
    raise unknown_name("ptir.signal.windows", name)


window = public(namespace="signal.windows", other_names={"M": "m"})
"""The decorator of the functions of this module."""

Formula = Callable[[Array, int], Any]
"""The window at the places 0, 1, ... n − 1 of n."""


def _made(m: int, sym: bool, dtype: object, formula: Formula) -> Tensor:
    if m < 0:
        raise ArgumentError(f"m is {m}, expected an integer of at least 0")
    count = m if sym or m < 2 else m + 1
    points = np.ones(count) if count < 2 else formula(np.arange(count, dtype=np.float64), count)
    kind = DEFAULT_FLOAT if dtype is None else as_dtype(dtype)
    return Tensor.of_array(np.asarray(points, np.float64)[:m].astype(kind.numpy))


def _centred(k: Array, n: int) -> Array:
    """The places from −1 at the first to 1 at the last."""
    return 2 * k / (n - 1) - 1


@window
def boxcar(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """Ones."""
    return _made(m, sym, dtype, lambda k, n: np.ones(n))


@window
def triang(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The triangle that is 0 beside its ends: 1 − |2k − (n − 1)| / (n + n mod 2)."""
    return _made(m, sym, dtype, lambda k, n: 1 - np.abs(2 * k - (n - 1)) / (n + n % 2))


@window
def bartlett(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The triangle that is 0 at its ends."""
    return _made(m, sym, dtype, lambda k, n: 1 - np.abs(_centred(k, n)))


@window
def general_cosine(m: int, a: Sequence[float], sym: bool = True, *, dtype: object = None) -> Tensor:
    """Σ (−1)ⁱ aᵢ cos(2πik / (n − 1))."""

    def formula(k: Array, n: int) -> Any:
        phase = 2 * math.pi * k / (n - 1)
        return sum((-1) ** i * part * np.cos(i * phase) for i, part in enumerate(a))

    return _made(m, sym, dtype, formula)


@window
def general_hamming(
    m: int, alpha: float = 0.54, sym: bool = True, *, dtype: object = None
) -> Tensor:
    """alpha − (1 − alpha) cos(2πk / (n − 1))."""
    return general_cosine(m, (alpha, 1 - alpha), sym, dtype=dtype)


@window
def hann(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The Hann window, a raised cosine: sin²(πk / (n − 1))."""
    return general_hamming(m, 0.5, sym, dtype=dtype)


@window
def hamming(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The Hamming window."""
    return general_hamming(m, 0.54, sym, dtype=dtype)


@window
def blackman(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The Blackman window, of three cosines."""
    return general_cosine(m, (0.42, 0.5, 0.08), sym, dtype=dtype)


@window
def nuttall(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """Nuttall's minimal Blackman-Harris window of four cosines.

    Source: Nuttall, "Some windows with very good sidelobe behavior" (1981).
    """
    return general_cosine(m, (0.3635819, 0.4891775, 0.1365995, 0.0106411), sym, dtype=dtype)


@window
def blackmanharris(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The Blackman-Harris window of four cosines."""
    return general_cosine(m, (0.35875, 0.48829, 0.14128, 0.01168), sym, dtype=dtype)


@window
def flattop(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The flat-top window of five cosines, for amplitudes."""
    parts = (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368)
    return general_cosine(m, parts, sym, dtype=dtype)


@window
def barthann(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The Bartlett-Hann window."""

    def formula(k: Array, n: int) -> Any:
        x = np.abs(k / (n - 1) - 0.5)
        return 0.62 - 0.48 * x + 0.38 * np.cos(2 * math.pi * x)

    return _made(m, sym, dtype, formula)


@window
def bohman(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The Bohman window, a half cosine with itself: 0 at its ends."""

    def formula(k: Array, n: int) -> Any:
        x = np.abs(_centred(k, n))
        found = (1 - x) * np.cos(math.pi * x) + np.sin(math.pi * x) / math.pi
        found[[0, -1]] = 0
        return found

    return _made(m, sym, dtype, formula)


@window
def parzen(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The Parzen window, of cubes."""

    def formula(k: Array, n: int) -> Any:
        x = np.abs(2 * k - (n - 1)) / n
        return np.where(x <= 0.5, 1 - 6 * x**2 * (1 - x), 2 * (1 - x) ** 3)

    return _made(m, sym, dtype, formula)


@window
def cosine(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """A half wave: sin(π (k + ½) / n)."""
    return _made(m, sym, dtype, lambda k, n: np.sin(math.pi * (k + 0.5) / n))


@window
def lanczos(m: int, sym: bool = True, *, dtype: object = None) -> Tensor:
    """The main lobe of sinc."""
    return _made(m, sym, dtype, lambda k, n: np.sinc(_centred(k, n)))


@window
def kaiser(m: int, beta: float = 12.0, sym: bool = True, *, dtype: object = None) -> Tensor:
    """I₀(beta √(1 − x²)) / I₀(beta) for x from −1 to 1."""
    return _made(m, sym, dtype, lambda k, n: np.kaiser(n, beta))


@window
def general_gaussian(
    m: int, p: float, sig: float, sym: bool = True, *, dtype: object = None
) -> Tensor:
    """exp(−½ |x / sig|²ᵖ) for places x from the middle."""

    def formula(k: Array, n: int) -> Any:
        return np.exp(-0.5 * np.abs((k - (n - 1) / 2) / sig) ** (2 * p))

    return _made(m, sym, dtype, formula)


@window
def gaussian(m: int, std: float = 1.0, sym: bool = True, *, dtype: object = None) -> Tensor:
    """exp(−½ (x / std)²) for places x from the middle."""
    return general_gaussian(m, 1.0, std, sym, dtype=dtype)


@window
def exponential(
    m: int,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    *,
    dtype: object = None,
) -> Tensor:
    """exp(−|k − center| / tau); the middle is the centre unless given."""
    if sym and center is not None:
        raise ArgumentError(f"a symmetric window has no center of its own, found {center}")

    def formula(k: Array, n: int) -> Any:
        return np.exp(-np.abs(k - ((n - 1) / 2 if center is None else center)) / tau)

    return _made(m, sym, dtype, formula)


@window
def tukey(m: int, alpha: float = 0.5, sym: bool = True, *, dtype: object = None) -> Tensor:
    """Ones whose first and last ``alpha`` / 2 are the halves of a Hann window."""

    def formula(k: Array, n: int) -> Any:
        if alpha <= 0:
            return np.ones(n)
        x = np.minimum(k, n - 1 - k) / (n - 1) / min(alpha, 1.0)  # half a period up to ½
        return np.where(x < 0.5, 0.5 * (1 - np.cos(2 * math.pi * x)), 1.0)

    return _made(m, sym, dtype, formula)


_OTHER_NAMES = {"box": "boxcar", "rect": "boxcar", "hanning": "hann", "half_cosine": "cosine"}


@window
def get_window(
    window: str | float | tuple[Any, ...],
    nx: int,
    fftbins: bool = True,
    *,
    dtype: object = None,
) -> Tensor:
    """The window of a name, of (a name, its parameters) or of Kaiser's beta; periodic unless
    ``fftbins`` is False."""
    if isinstance(window, int | float):
        window = ("kaiser", window)
    name, *given = (window,) if isinstance(window, str) else window
    name = _OTHER_NAMES.get(name, name)
    if name not in __all__ or name == "get_window":
        raise unknown_name("ptir.signal.windows", str(name))
    return globals()[name](nx, *given, sym=not fftbins, dtype=dtype)
