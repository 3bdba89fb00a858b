"""Every sample that torch tests its own operators with, in eager mode and compiled.

`tests.support.op_info.ROWS` says what each operator is called here. Samples are torch's, and the
same with special values in the place of some elements: zeros of both signs, infinities, NaN,
denormals, the largest. A few of each row run compiled.
"""

# torch's test samples have no types, and traced functions take any array.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import random
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import DTypeError
from gptrs.ir.types import Array
from tests.cases.sample import ORDER, differences, same_bits
from tests.support.lazy_torch import torch
from tests.support.op_info import EXCLUDED, ROWS, NotOursError, Row

pytestmark = pytest.mark.slow

TORCH = {
    "f32": "float32",
    "f64": "float64",
    "i1": "bool",
    "ui8": "uint8",
    "si8": "int8",
    "si32": "int32",
    "si64": "int64",
}
NAMES = {theirs: name for name, theirs in TORCH.items()}
MOST = 24
"""Samples of a row and a dtype that are compared."""
COMPILED = 1
"""Those of them that are compiled as well, of each of a row's first dtypes: with special values
where the row has them, as kernels take the same path for all others."""


@cache
def infos() -> dict[str, Any]:
    """torch's operators by name: they take seconds to import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {info.full_name: info for info in op_db}


def dtype_of(name: str) -> torch.dtype:
    return getattr(torch, TORCH[name])


def changed(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """What a sample holds with its tensors changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, torch.dtype):
        return NAMES[str(value).removeprefix("torch.")]
    if isinstance(value, list | tuple):
        return tuple(changed(part, change) for part in value)
    if isinstance(value, dict):
        return {name: changed(part, change) for name, part in value.items()}
    return value


def array_of(tensor: torch.Tensor) -> Array:
    return np.array(tensor.detach().resolve_conj().numpy())


def leaves(results: Any) -> tuple[Any, ...]:
    """What a function gives, or the parts of what it gives."""
    if isinstance(results, list | tuple):
        return tuple(leaf for part in results for leaf in leaves(part))
    return (results,)


def with_special(row: Row, rng: np.random.Generator) -> Callable[[torch.Tensor], torch.Tensor]:
    """Half of the elements of floats replaced; sums keep from overflow, which order decides."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        array = array_of(tensor)
        info = np.finfo(array.dtype)
        values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5]
        if row.why != ORDER:
            values += [float(n) for n in (info.smallest_subnormal, -info.tiny, info.max, info.min)]
        chosen = rng.choice(np.array(values, array.dtype), array.shape)
        return torch.from_numpy(np.where(rng.random(array.shape) < 0.5, chosen, array))

    return change


class Call:
    """A sample, called by torch and by ours."""

    def __init__(self, row: Row, sample: Any, change: Any = None) -> None:
        self.row = row
        parts = (sample.input, sample.args, sample.kwargs)
        if change is not None:
            parts = tuple(_with_tensors(part, change) for part in parts)
        self.parts = parts
        self.arrays: list[Array] = []
        changed(parts, lambda tensor: self.arrays.append(array_of(tensor)))

    def ours(self, *tensors: Any) -> tuple[Any, ...]:
        """The results of our function, on tensors in the place of the arrays."""
        rest = iter(tensors)
        x, args, kwargs = changed(self.parts, lambda _: next(rest))
        return leaves(self.row.call(x, *args, **kwargs))

    def expected(self, info: Any) -> tuple[Array, ...] | None:
        """torch's results, or NumPy's; None where torch refuses."""
        x, args, kwargs = self.parts
        if self.row.numpy is not None:
            with np.errstate(all="ignore"):
                return (self.row.numpy(*self.arrays),)
        try:
            found = info.op(x, *args, **kwargs)
        except (RuntimeError, IndexError, NotImplementedError):
            return None
        return tuple(array_of(result) for result in leaves(found))


def _with_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return tuple(_with_tensors(part, change) for part in value)
    if isinstance(value, dict):
        return {name: _with_tensors(part, change) for name, part in value.items()}
    return value


def calls(row: Row, dtype: str) -> Iterator[tuple[Call, tuple[Array, ...], tuple[Array, ...]]]:
    """Calls that both sides take: ours in eager mode, and what is expected."""
    info, count = infos()[row.info], 0
    rng = np.random.default_rng(zlib.crc32(f"{row.info} {dtype}".encode()))
    # Not torch.manual_seed, for each sample: that imports torch's compiler, and notes the stack.
    torch.default_generator.manual_seed(0)
    random.seed(0)
    # Nor `info.sample_inputs`, which looks for the test through all modules, for each dtype.
    for sample in info.sample_inputs_func(info, "cpu", dtype_of(dtype), False):
        changes = (with_special(row, rng), None) if row.special and dtype[0] == "f" else (None,)
        for change in changes:
            call = Call(row, sample, change)
            try:
                with ptir.eager():
                    found = tuple(t.numpy() for t in call.ours(*map(ptir.tensor, call.arrays)))
            except (NotOursError, DTypeError):  # nothing is promoted here
                continue
            expected = call.expected(info)
            if expected is not None:
                count += 1
                yield call, found, expected[: len(found)]
        if count >= MOST:
            return


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.info)
def test_samples(row: Row) -> None:
    assert bool(row.ulps) == bool(row.why)
    assert bool(row.differs) == (row.numpy is not None or not row.special)
    tried = 0
    for dtype in row.dtypes:
        assert dtype_of(dtype) in infos()[row.info].dtypes
        compiled = 0
        for call, found, expected in calls(row, dtype):
            tried += 1
            check(call, found, expected)
            some = call.arrays and call.arrays[0].size > 1
            if dtype in row.dtypes[: row.compiled] and compiled < COMPILED and some:
                compiled += 1
                jitted = ptir.jit(lambda *xs: call.ours(*xs))(*call.arrays)  # noqa: B023
                results = tuple(t.numpy() for t in jitted)
                check(call, results, expected)
                assert row.ulps or all(map(same_bits, results, found))
    assert tried


def test_every_operator_has_a_row_or_a_reason() -> None:
    tested = {row.info for row in ROWS}
    assert not tested & set(EXCLUDED)
    assert tested | set(EXCLUDED) == set(infos())
    assert all(len(reason) > 10 for reason in EXCLUDED.values())


def check(call: Call, found: tuple[Array, ...], expected: tuple[Array, ...]) -> None:
    for a, b in zip(found, expected, strict=True):
        wrong = differences(a, b, call.row.ulps, call.row.magnitude)
        assert not wrong, f"{wrong}\n{call.parts}"
