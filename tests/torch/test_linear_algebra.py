"""Linear algebra of torch by the table: results, errors of matrices, and what torch keeps."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gptrs.torch
from gptrs import ptir
from gptrs.errors import CheckError, MatrixError

space: Any = torch  # its stubs leave much out
linalg: Any = torch.linalg


@pytest.fixture(autouse=True)
def afresh() -> None:
    """Programs of sizes that are known: another test's would become symbols."""
    space.compiler.reset()


def compiled(function: Callable[..., Any], *, strict: bool = True) -> Callable[..., Any]:
    """``function`` through the table, where ``strict`` without torch."""
    compiler: Any = space.compile
    return compiler(function, backend="gptrs", options={"strict": strict})


def matrices(*shape: int) -> torch.Tensor:
    torch.manual_seed(0)
    square = torch.randn(*shape, 4, 4)
    return square @ square.mT + torch.eye(4)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "inv": lambda x: linalg.inv(x),
    "cholesky": lambda x: linalg.cholesky(x, upper=True),
    "solve": lambda x: linalg.solve(x, x[..., :2] + 1),
    "solve of vectors": lambda x: linalg.solve(x, x[..., 0] + 1),
    "solve from the right": lambda x: linalg.solve(x, x[..., :3, :] + 1, left=False),
    "det": lambda x: linalg.det(x),
    "slogdet": lambda x: tuple(linalg.slogdet(x)),
    "eigh": lambda x: linalg.eigh(x)[0],
    "svd": lambda x: (u := linalg.svd(x))[0] * u[1][..., None, :] @ u[2],
    "qr": lambda x: linalg.qr(x).Q @ linalg.qr(x, mode="r").R,
    "pinv": lambda x: linalg.pinv(x - x[..., :1, :]),
    "pinv of symmetric ones": lambda x: linalg.pinv(x, hermitian=True),
    "matrix_rank": lambda x: linalg.matrix_rank(x - x[..., :1, :]),
    "cholesky_solve": lambda x: torch.cholesky_solve(x + 1, linalg.cholesky(x)),
    "lu": lambda x: tuple(linalg.lu(x[..., :3])),
    "lu_factor": lambda x: tuple(linalg.lu_factor(x)),
    "lu_solve": lambda x: linalg.lu_solve(*linalg.lu_factor(x), x + 1, left=False, adjoint=True),
    "solve_triangular": lambda x: linalg.solve_triangular(x, x + 1, upper=True, left=False),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_matrices(name: str, shape: tuple[int, ...]) -> None:
    x = matrices(*shape)
    made, wanted = compiled(FUNCTIONS[name])(x), FUNCTIONS[name](x)
    torch.testing.assert_close(made, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "lu_factor"])
def test_matrices_without_a_result_are_errors_of_torch(name: str) -> None:
    function = compiled(FUNCTIONS[name])
    with pytest.raises(linalg.LinAlgError, match=r"ingular|definite|diagonal") as caught:
        function(torch.zeros(4, 4))
    assert isinstance(caught.value.__cause__, CheckError if name == "lu_factor" else MatrixError)


def test_errors_of_numpy() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        ptir.linalg.inv(np.zeros((2, 2)))


def test_numbers_of_errors_are_torchs() -> None:
    def function(x: torch.Tensor) -> Any:
        found = linalg.inv_ex(x)
        return found.info + 0

    called = compiled(function, strict=False)
    assert called(torch.zeros(3, 3)) == 1
    (graph,) = gptrs.torch.explain(called, torch.zeros(3, 3))
    assert [fallback.operator for fallback in graph.fallbacks] == ["linalg_inv_ex.default"]


def test_factors_that_a_gradient_reads_are_torchs() -> None:
    given = matrices()
    x, y = given.clone().requires_grad_(), given.clone().requires_grad_()
    compiled(lambda x: linalg.det(x), strict=False)(x).backward()
    linalg.det(y).backward()
    torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_embeddings(mode: str) -> None:
    weight, ids = torch.randn(6, 3), torch.tensor([1, 2, 4, 5, 4, 3, 1])
    weight[4] = float("nan")  # the row of the padding
    offsets = torch.tensor([0, 3, 3, 5])

    def function(weight: torch.Tensor, ids: torch.Tensor, offsets: torch.Tensor) -> Any:
        return torch.nn.functional.embedding_bag(ids, weight, offsets, mode=mode, padding_idx=4)

    made, wanted = compiled(function)(weight, ids, offsets), function(weight, ids, offsets)
    torch.testing.assert_close(made, wanted)


@pytest.mark.parametrize("bounds", [(0, 0), (-0.5, 1.5)])
def test_histograms(bounds: tuple[float, float]) -> None:
    x = torch.tensor([[0.25, 1.5, -0.5, float("nan"), 0.6, 3.0, 1.0]])
    x = x.nan_to_num() if bounds == (0, 0) else x
    made = compiled(lambda x: torch.histc(x, 4, *bounds))(x)
    torch.testing.assert_close(made, torch.histc(x, 4, *bounds))
