"""The kernels of a GPU where Triton is installed."""

from __future__ import annotations

from collections.abc import Mapping

from gptrs.backends.c_family.kernels import PARALLEL_KERNELS, Maker
from gptrs.backends.triton.attention import attention_calls
from gptrs.backends.triton.product import dot_general_calls
from gptrs.ir.ops.composite import attention
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.program import Operation

TILE_KERNELS: Mapping[Operation, Maker] = {
    **PARALLEL_KERNELS,
    dot_general: dot_general_calls,
    attention: attention_calls,
}
"""Those of `PARALLEL_KERNELS`, with tile programs in place of the hot ones."""
