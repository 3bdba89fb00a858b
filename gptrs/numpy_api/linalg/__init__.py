"""``ptir.linalg``: linear algebra by the names of the array API standard and of NumPy.

Matrices are [..., M, N]; leading axes are a batch, and broadcast. f32, f64, cf32 and cf64 keep
their precision; other real dtypes are computed as f32. What has no result (a singular matrix) is an
`ElementError`.

| module | functions |
|---|---|
| `factorisations` | cholesky, qr, svd, svdvals, eigh, eigvalsh, eig, eigvals |
| `equations` | solve, solve_triangular, inv, pinv, lstsq, det, slogdet, matrix_rank, ... |
| `norms` | norm, vector_norm, matrix_norm, cond |
| `matrix_products` | those of ``ptir`` over the last axes, multi_dot, matrix_power |
"""

from typing import NoReturn

from gptrs.ir.names import unknown_name
from gptrs.numpy_api.linalg.equations import (
    det,
    inv,
    lstsq,
    matrix_rank,
    pinv,
    slogdet,
    solve,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from gptrs.numpy_api.linalg.factorisations import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from gptrs.numpy_api.linalg.matrix_products import (
    cross,
    diagonal,
    matmul,
    matrix_power,
    matrix_transpose,
    multi_dot,
    outer,
    tensordot,
    trace,
    vecdot,
)
from gptrs.numpy_api.linalg.norms import cond, matrix_norm, norm, vector_norm

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


def __getattr__(name: str) -> NoReturn:
    """The error for a name that is not there."""
    raise unknown_name("ptir.linalg", name)
