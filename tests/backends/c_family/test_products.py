"""Products in blocks: the same bits for a row whatever rows come with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs.backends.c_family.c_target import CTarget, c_program
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.cases.programs import record
from tests.support.c_programs import compiled, needs_gcc, run


@needs_gcc
@pytest.mark.parametrize("columns", [64, 70, 200])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_row_has_the_same_bits_in_any_company(
    columns: int, transposed: bool, tmp_path: Path
) -> None:
    shape = f"{columns},300" if transposed else f"300,{columns}"

    def multiplied(x: Any, w: Any) -> Any:
        return x @ (w.T if transposed else w)

    program = record(multiplied, "f32[?N,300]", f"f32[{shape}]")
    made = c_program("product", lower(program, Context(CTarget())))
    library = compiled([made], tmp_path)
    rng = np.random.default_rng(columns)
    x = rng.standard_normal((110, 300)).astype(np.float32)
    w = rng.standard_normal((columns, 300) if transposed else (300, columns)).astype(np.float32)
    whole = run(library, made, [x, w], {"N": 110})[0]
    assert not isinstance(whole, str)
    exact = x.astype(np.float64) @ (w.T if transposed else w)
    assert np.allclose(whole, exact, rtol=1e-5, atol=1e-4)
    for first, last in ((0, 1), (3, 16), (40, 110), (108, 110)):
        part = run(library, made, [x[first:last], w], {"N": last - first})[0]
        assert not isinstance(part, str)
        assert part.tobytes() == whole[first:last].tobytes()
