"""``ptir.linalg``: linear algebra by the names of the array API standard and of NumPy.

Matrices are [..., M, N]; leading axes are a batch, and broadcast. f32, f64, cf32 and cf64 keep
their precision; other real dtypes are computed as f32. What has no result (a singular matrix) is an
`ElementError`.

| module | functions |
|---|---|
| `factorisations` | cholesky, qr, svd, svdvals, eigh, eigvalsh, eig, eigvals |
| `equations` | solve, solve_triangular, inv, pinv, lstsq, det, slogdet, matrix_rank, ... |
| `matrix_functions` | matrix_exp, logdet, cholesky_solve, cholesky_inverse |
| `lu_factorisation` | lu, lu_factor, lu_solve, lu_unpack |
| `norms` | norm, vector_norm, matrix_norm, cond |
| `matrix_products` | those of ``ptir`` over the last axes, multi_dot, matrix_power |
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.names import unknown_name
from gptrs.locks import late_import

MODULES: dict[str, tuple[str, ...]] = {
    "factorisations": ("cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"),
    "equations": (
        *("det", "inv", "lstsq", "matrix_rank", "pinv", "slogdet", "solve", "solve_triangular"),
        *("tensorinv", "tensorsolve"),
    ),
    "matrix_functions": ("cholesky_inverse", "cholesky_solve", "logdet", "matrix_exp"),
    "lu_factorisation": ("lu", "lu_factor", "lu_solve", "lu_unpack"),
    "norms": ("cond", "matrix_norm", "norm", "vector_norm"),
    "matrix_products": (
        *("cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot"),
        *("outer", "tensordot", "trace", "vecdot"),
    ),
}
"""The names of each module, its ``__all__``."""

_PLACES = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """The function called ``name``."""
    if name not in _PLACES:
        raise unknown_name("ptir.linalg", name)
    return getattr(late_import(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_PLACES)
