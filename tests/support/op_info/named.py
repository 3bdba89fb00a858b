"""Functions and methods that have torch's own name and arguments here."""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gptrs import ptir
from tests.cases.sample import LIBM
from tests.support.op_info.elementwise import NUMPY_REMAINDER
from tests.support.op_info.row import SUMMED, F, Row

NUMBERS = ("f32", "f64", "si64", "ui8")
ANY = (*NUMBERS, "i1")
SPACES = ("linalg", "fft")

MOVED = """
    block_diag broadcast_tensors cartesian_prod chunk clone column_stack combinations contiguous
    diag diagonal dsplit dstack expand fft.fftshift fft.ifftshift flatten fliplr flipud hsplit
    hstack masked_fill meshgrid.variadic_tensors movedim narrow ones ones_like ravel
    repeat_interleave roll rot90 split_with_sizes t take_along_dim tril triu unbind unflatten
    vsplit vstack zeros zeros_like T mT
"""
EQUAL = """
    conj copysign deg2rad isclose isinf isnan isneginf isposinf isreal kron logical_xor
    max.reduction_no_dim min.reduction_no_dim nan_to_num outer rad2deg real signbit true_divide
    __radd__ __rmul__
"""
EQUAL_NUMBERS = "isin positive trunc __rsub__"
EQUAL_FLOATS = """
    complex frac frexp nextafter view_as_complex nn.functional.softshrink
"""
EQUAL_BITS = "__rand__ __ror__ __rxor__"
EQUAL_INTEGERS = "gcd lcm unravel_index"

CURVES = """
    acos acosh asin asinh atan atan2 atanh cosh digamma erfc erfinv exp2 expm1 log10 log1p log2
    sinc sinh special.entr special.erfcx special.i0e special.i1e special.log_ndtr special.ndtr
    special.ndtri special.xlog1py tan xlogy lgamma
"""
POLES = "infinities, poles, numbers outside of the domain and 3e38, which torch makes NaN"
MANY_GAMMAS = "mvlgamma.mvlgamma_p_1 mvlgamma.mvlgamma_p_3 mvlgamma.mvlgamma_p_5"
CURVES_OF_FLOATS = "hypot logaddexp logaddexp2 polar"
SUMS = """
    addmm addmm.decomposed addcmul cross inner linalg.cross vdot __rmatmul__
"""
SUMS_OF_FLOATS = "addcdiv norm.fro"
FACTORED = """
    bmm.triton_optimized cholesky cholesky_inverse cholesky_solve linalg.cholesky linalg.cond
    linalg.det linalg.eigvals linalg.eigvalsh linalg.inv linalg.matrix_power linalg.matrix_rank
    linalg.multi_dot linalg.norm linalg.norm.subgradients_at_zero linalg.pinv linalg.qr
    linalg.slogdet linalg.solve_triangular linalg.svd linalg.svdvals linalg.tensorinv linalg.vecdot
    norm.nuc pinverse
"""
LARGEST_EXPONENTIAL = 1e5
"""Beside it all elements of a matrix have the largest one's errors (3e5 and 5e7 in the samples)."""
CONVERGED = "products in another order, elimination or iteration: one NaN or none"

RECIPROCAL = "the quotient is compiled as a product with the reciprocal"


def _named(info: str) -> Callable[..., Any]:
    """The function of ``ptir``, or the method or property of a tensor, that an OpInfo names."""
    first, _, rest = info.removeprefix("special.").partition(".")
    if first in SPACES:
        return lambda *args, **kwargs: getattr(getattr(ptir, first), rest.split(".")[0])(
            *args, **kwargs
        )
    if first == "nn":
        return getattr(ptir.nn, info.split(".")[-1])
    if hasattr(ptir, first):
        return getattr(ptir, first)

    def member(x: Any, *args: Any, **kwargs: Any) -> Any:
        found = getattr(x, first)
        return found(*args, **kwargs) if callable(found) else found

    return member


def _rows(infos: str, dtypes: tuple[str, ...], **more: Any) -> tuple[Row, ...]:
    more.setdefault("compiled", 1)
    return tuple(Row(info, _named(info), dtypes, **more) for info in infos.split())


ROWS: tuple[Row, ...] = (
    *_rows(MOVED, ANY),
    Row("view", lambda x, *shape: x.view(*shape), ANY, compiled=1),
    *_rows("masked_select tensor_split", ANY, compiled=0),  # the shape depends on values
    *_rows(EQUAL, ANY),
    *_rows(EQUAL_NUMBERS, NUMBERS),
    *_rows(EQUAL_FLOATS, F),
    *_rows(EQUAL_BITS, ("si64", "ui8", "i1")),
    *_rows(EQUAL_INTEGERS, ("si64", "ui8")),
    *_rows(CURVES, ANY, ulps=32, magnitude=1, why=LIBM),
    *_rows("round.decimals_3 round.decimals_neg_3", F, ulps=2, why=RECIPROCAL),
    *_rows("i0", ANY, special=False, differs="NaN at ∞", ulps=8, magnitude=1, why=LIBM),
    *_rows("special.zeta", F, special=False, differs=POLES, ulps=64, magnitude=1, why=LIBM),
    *_rows(MANY_GAMMAS, F, special=False, differs=POLES, ulps=64, magnitude=1, why=LIBM),
    *_rows("matrix_exp", F, **{**SUMMED, "magnitude": LARGEST_EXPONENTIAL}),
    *_rows(CURVES_OF_FLOATS, F, ulps=16, magnitude=1, why=LIBM),
    *_rows(SUMS, NUMBERS, **SUMMED),
    *_rows(SUMS_OF_FLOATS, F, **SUMMED),
    *_rows("corrcoef", NUMBERS, **SUMMED),
    *_rows(FACTORED, F, special=False, differs=CONVERGED, **SUMMED),
    Row("fmod", ptir.fmod, NUMBERS, numpy=np.fmod, differs=NUMPY_REMAINDER),
    Row("__rmod__", lambda x, y: y % x, NUMBERS, numpy=lambda x, y: y % x, differs=NUMPY_REMAINDER),
)
