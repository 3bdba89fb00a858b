"""Rows of linear algebra."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tests.cases.sample import Case, Sample, sample
from tests.support.lazy_torch import torch

DTYPES = ("f32", "f64", "cf32", "cf64")
WIDE = ("f64", "cf64")
LAPACK = "LAPACK in single precision, and of another library: NumPy rounds f32 from f64"


def _square(values: str, **attrs: Any) -> tuple[Sample, ...]:
    shapes = ("S,4,4", "2,S,S", "5,5", "1,1", "0,3,3", "2,0,0", "2,3,2,2", "1,3,2,2")
    return tuple(sample(f"T[{shape}] {values}", **attrs) for shape in shapes)


def _rectangular(**attrs: Any) -> tuple[Sample, ...]:
    shapes = ("S,4,3", "2,S,S", "3,4", "1,1", "0,3,2")
    return tuple(sample(f"T[{shape}] unit", **attrs) for shape in shapes)


def _oriented(vectors: torch.Tensor, like: Any) -> torch.Tensor:
    """Columns times the numbers of modulus 1 that turn them to those of ``like``: any such multiple
    is an eigenvector."""
    turn = (vectors.conj() * torch.from_numpy(like)).sum(-2, keepdim=True)
    return vectors * torch.sgn(turn)


def _eigh(x: torch.Tensor, *, lower: bool = True) -> tuple[torch.Tensor, ...]:
    uplo = _uplo(lower)
    values, vectors = torch.linalg.eigh(x, UPLO=uplo)
    return values, _oriented(vectors, np.linalg.eigh(x.numpy(), UPLO=uplo)[1])


def _eig(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    values, vectors = torch.linalg.eig(x)
    return values, _oriented(vectors, np.linalg.eig(x.numpy())[1])


def _qr(x: torch.Tensor, *, complete: bool = False) -> tuple[torch.Tensor, ...]:
    mode = "complete" if complete else "reduced"
    q, r = torch.linalg.qr(x, mode=mode)
    like = np.linalg.qr(x.numpy(), mode=mode)[0]
    turn = torch.sgn((q.conj() * torch.from_numpy(like)).sum(-2, keepdim=True))
    return q * turn, r * turn.conj().mT


def _svd(x: torch.Tensor, *, full_matrices: bool = True) -> tuple[torch.Tensor, ...]:
    u, s, vh = torch.linalg.svd(x, full_matrices=full_matrices)
    left, _, right = np.linalg.svd(x.numpy(), full_matrices=full_matrices)
    return _oriented(u, left), s, _oriented(vh.mT, right.swapaxes(-1, -2)).mT


def _uplo(lower: bool) -> Literal["L", "U"]:
    return "L" if lower else "U"


LINALG = (
    Case(
        "cholesky",
        (*_square("definite"), *_square("definite", upper=True)),
        lambda x, *, upper=False: torch.linalg.cholesky(x, upper=upper),
        DTYPES,
        ulps=16,
        magnitude=1,
        why=LAPACK,
    ),
    Case(
        "solve",
        (
            sample("T[S,4,4] definite", "T[S,4,2] unit"),
            sample("T[2,S,S] definite", "T[2,S,1] unit"),
            sample("T[3,3] definite", "T[3,S] unit"),
            sample("T[0,2,2] definite", "T[0,2,1] unit"),
            sample("T[2,3,3] definite", "T[2,3,0] unit"),
        ),
        lambda a, b: torch.linalg.solve(a, b),
        DTYPES,
        ulps=64,
        magnitude=1,
        why=LAPACK,
    ),
    Case(
        "inv",
        _square("definite"),
        lambda x: torch.linalg.inv(x),
        DTYPES,
        ulps=64,
        magnitude=1,
        why=LAPACK,
    ),
    Case(
        "det",
        (*_square("definite"), *_square("unit")),
        lambda x: torch.linalg.det(x),
        DTYPES,
        ulps=64,
        magnitude=10,
        why=LAPACK,
    ),
    Case(
        "slogdet",
        _square("definite"),
        lambda x: tuple(torch.linalg.slogdet(x)),
        DTYPES,
        ulps=64,
        magnitude=10,
        why=LAPACK,
    ),
    Case(
        "eigh",
        (*_square("definite"), *_square("definite", lower=False)),
        _eigh,
        DTYPES,
        ulps=512,
        magnitude=1,
        why=f"{LAPACK}; vectors differ by the error of the matrix over the distance of the values",
    ),
    Case(
        "eigvalsh",
        (*_square("definite"), *_square("definite", lower=False)),
        lambda x, *, lower=True: torch.linalg.eigvalsh(x, UPLO=_uplo(lower)),
        DTYPES,
        ulps=64,
        magnitude=1,
        why=LAPACK,
    ),
    Case(
        "eig",
        _square("unit"),
        _eig,
        WIDE,
        ulps=1024,
        magnitude=1,
        why=LAPACK,
    ),
    Case(
        "eigvals",
        _square("unit"),
        lambda x: torch.linalg.eigvals(x),
        WIDE,
        ulps=512,
        magnitude=1,
        why=LAPACK,
    ),
    Case(
        "qr",
        (*_rectangular(), *_rectangular(complete=True)),
        _qr,
        WIDE,
        ulps=64,
        magnitude=1,
        why=LAPACK,
    ),
    Case(
        "svd",
        (*_rectangular(), *_rectangular(full_matrices=False)),
        _svd,
        DTYPES,
        ulps=512,
        magnitude=1,
        why=f"{LAPACK}; vectors differ by the error of the matrix over the distance of the values",
    ),
    Case(
        "svdvals",
        _rectangular(),
        lambda x: torch.linalg.svdvals(x),
        DTYPES,
        ulps=64,
        magnitude=1,
        why=LAPACK,
    ),
)
