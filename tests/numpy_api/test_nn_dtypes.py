"""The newer functions of ``ptir.nn`` in f64, f16 and bf16, in eager mode: narrow floats are torch's
result in f32 of the same numbers, rounded once."""

# torch's functions, and ours by name, have no types here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from tests.numpy_api.nn_calls import TABLE, Call, call_with
from tests.support.lazy_torch import F, torch

NAMES = {
    *("scaled_dot_product_attention", "linear", "bilinear", "embedding", "pad", "unfold", "fold"),
    *("pixel_shuffle", "interpolate", "pdist", "triplet_margin_loss", "multi_margin_loss"),
}
EPS = {"f64": 2.0**-52, "f16": 2.0**-10, "bf16": 2.0**-7}
CALLS = [call for call in TABLE if call.name in NAMES]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_function(call: Call, dtype: str) -> None:
    def ours(array: Any) -> Any:
        return ptir.tensor(array).astype(dtype) if array.dtype.kind == "f" else ptir.tensor(array)

    def theirs(array: Any) -> Any:
        tensor = ours(array)
        wide = (
            tensor.astype("f64" if dtype == "f64" else "f32") if array.dtype.kind == "f" else tensor
        )
        return torch.from_numpy(np.array(wide.numpy()))

    with ptir.eager():
        expected = call_with(getattr(F, call.name), call, theirs).numpy()
        found = call_with(getattr(ptir.nn, call.name), call, ours)
        if expected.dtype.kind != "f":
            return
        assert found.dtype.name == dtype
        error = np.abs(found.astype("f64").numpy() - expected)
    # half a unit of the last place by rounding, and sums in another order where nothing is rounded
    bound = EPS[dtype] * (np.abs(expected) + (100 if dtype == "f64" else 1e-2))
    assert np.all(error <= bound)
