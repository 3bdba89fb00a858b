"""Every row of the op table against the reference, over dtypes, at fixed and symbolic sizes."""

from __future__ import annotations

import pytest

from gptrs.backends.base import Backend
from gptrs.errors import DTypeError
from tests.cases.sample import Case
from tests.support.rows import check_sample


def test_row(backend: Backend, case: Case, dtype: str, samples: tuple[int, ...]) -> None:
    declined: list[str] = []
    for number in samples:
        try:
            check_sample(case, number, dtype, backend)
        except DTypeError as error:
            declined.append(error.problem)
    # Allowed, and said, for dtypes but those that every backend has: see `tests.support.backends`.
    if len(declined) == len(samples):
        pytest.skip(declined[0])
