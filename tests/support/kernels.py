"""Small kernels, and access to the cache of compiled objects."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs.kernels.compiler import isa, loaded_object
from gptrs.kernels.compiler.compile import Kernel, compile_ir
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.compiler.object_cache import KernelCache, open_cache

# A level's own instructions where this CPU has them; else its code on the best of this CPU's.
HERE = [level.name for level in isa.host_levels()]
LEVELS = [(name if name in HERE else HERE[0], name) for name in isa.ISAS]

# out[i] = x[i] * factor + x[0], over a range of rows of n elements
SCALE = """
def scale(arguments, first, last):
    block = words(arguments)
    x, out, n, factor = floats(block[0]), floats(block[1]), block[2], floats(block[3])[0]
    for i in range(first * n, last * n):
        out[i] = x[i] * factor + x[0]
"""

DOUBLE_IR = """
define void @double(i64 %arguments, i64 %first, i64 %last) {
entry:
  %block = inttoptr i64 %arguments to ptr
  %address = load i64, ptr %block
  %x = inttoptr i64 %address to ptr
  %some = icmp slt i64 %first, %last
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %at = getelementptr float, ptr %x, i64 %i
  %value = load float, ptr %at
  %twice = fadd float %value, %value
  store float %twice, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

# Adds the extent to a word: small, and needs no Numba.
COUNT_IR = """
define void @count(i64 %arguments, i64 %first, i64 %last) {
  %p = inttoptr i64 %arguments to ptr
  %old = load i64, ptr %p
  %extent = sub i64 %last, %first
  %new = add i64 %old, %extent
  store i64 %new, ptr %p
  ret void
}
"""


@cache
def text_of(build: Callable[..., KernelText], *arguments: Any) -> KernelText:
    """What ``build`` writes, written once."""
    return build(*arguments)


def run(kernel: Kernel, *arguments: NDArray[Any] | int, extent: tuple[int, int] = (0, 1)) -> None:
    words = [a if isinstance(a, int) else a.ctypes.data for a in arguments]
    block = np.array(words, np.int64)
    kernel(block.ctypes.data, *extent)


def check_scale(kernel: Kernel) -> None:
    x = np.random.default_rng(0).standard_normal((5, 37), np.float32)
    out, factor = np.zeros_like(x), np.array([0.5], np.float32)
    run(kernel, x, out, 37, factor, extent=(1, 4))
    np.testing.assert_allclose(out[1:4], x[1:4] * factor + x[0, 0], rtol=1e-6, atol=1e-6)
    assert not out[[0, 4]].any(), "only the range is written"


def opened() -> KernelCache:
    store = open_cache()
    assert store is not None
    return store


def again(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """The kernel as a new process would get it."""
    monkeypatch.setattr(loaded_object, "_libraries", dict[str, Any]())
    return compile_ir(COUNT_IR, "count")


def check_count(kernel: Kernel) -> None:
    word = np.array([40], np.int64)
    kernel(word.ctypes.data, 5, 7)
    assert word[0] == 42


def files(store: KernelCache) -> list[str]:
    return sorted(os.listdir(store.folder))
