"""Every public attribute of torch's tensors: a Tensor has it, or its error says what to write."""

# torch's classes are only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gptrs import ptir as namespace
from gptrs.numpy_api.counterparts import COUNTERPARTS, counterpart
from tests.support.lazy_torch import torch

ptir: Any = namespace
TENSOR = {name for name in dir(namespace.Tensor) if not name.startswith("_")}
TEXTS = COUNTERPARTS["Tensor"]


def test_torch_has_no_attribute_without_one_or_a_text() -> None:
    theirs = {name for name in dir(torch.Tensor) if not name.startswith("_")}
    missing = theirs - TENSOR - TEXTS.keys()
    guessed = [n for n in missing if "tensors are immutable" not in counterpart("Tensor", n)]
    assert guessed == []
    assert len(theirs & TENSOR) > 300


def test_texts_are_of_what_is_missing() -> None:
    assert TENSOR & TEXTS.keys() == set()


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_text_names_what_there_is(name: str) -> None:
    for method in re.findall(r"(?<![\w.])x\.(\w+)", TEXTS[name]):
        assert method in TENSOR, method
    for path in re.findall(r"(?<![\w.])ptir((?:\.\w+)+)", TEXTS[name]):
        found: Any = ptir
        for part in path[1:].split("."):
            found = getattr(found, part)
    with pytest.raises(AttributeError, match=re.escape(TEXTS[name])):
        getattr(ptir.tensor([1.0]), name)


X = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 0.5], [2.0, 0.5, 6.0]], np.float32)
L = np.linalg.cholesky(X)
METHODS: dict[str, tuple[Any, ...]] = {
    "cholesky": (X, ()),
    "cholesky_inverse": (L, ()),
    "cholesky_solve": (X, (L,)),
    "conj_physical": (X + 1j * X.T, ()),
    "cross": (X, (L, 0)),
    "igamma": (X, (L + 1,)),
    "igammac": (X, (L + 1,)),
    "is_same_size": (X, (L,)),
    "logdet": (np.stack((X, -X, X * 0)), ()),
    "matrix_exp": (X / 4, ()),
    "mvlgamma": (X + 2, (2,)),
    "narrow_copy": (X, (1, 0, 2)),
    "polygamma": (X, (2,)),
    "resolve_conj": (X, ()),
    "resolve_neg": (X, ()),
    "unsafe_chunk": (X, (2, 1)),
}
"""Of torch alone: the Tensor and the arguments of a method."""


@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated:UserWarning")
@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_torch(name: str) -> None:
    x, arguments = METHODS[name]
    theirs = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in (x, *arguments)]
    expected: Any = getattr(theirs[0], name)(*theirs[1:])
    found: Any = getattr(ptir.tensor(x), name)(*arguments)
    if isinstance(expected, bool):
        assert found is expected
        return
    parts = [expected] if isinstance(expected, torch.Tensor) else expected
    for ours, theirs in zip([found] if len(parts) == 1 else found, parts, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-5, atol=2e-5)
