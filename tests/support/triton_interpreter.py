"""Tile programs in Triton's interpreter, which needs no GPU and no compiler: in a process in which
``TRITON_INTERPRET`` was set before Triton was imported."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.triton.compiler import function

_DTYPES = {
    "*fp32": torch.float32,
    "*bf16": torch.bfloat16,
    "*fp16": torch.float16,
    "*i32": torch.int32,
    "*i64": torch.int64,
}


def interpreted(
    kernel: Kernel, programs: int, memory: Sequence[Any], numbers: Sequence[int]
) -> None:
    """Run a tile program on writable buffers."""
    assert kernel.tiles is not None
    pairs = zip(memory, kernel.tiles.pointers, strict=True)
    arrays = [torch.frombuffer(each, dtype=_DTYPES[kind]) for each, kind in pairs]
    with np.errstate(all="ignore"):
        function(kernel)[(programs,)](*arrays, *numbers)
