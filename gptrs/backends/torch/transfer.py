"""Transfers between NumPy arrays and torch tensors in the carriers of their dtypes."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch

from gptrs.backends.torch.carriers import CARRIERS, FP8, is_wider
from gptrs.ir.types import Array, Type, as_dtype, bf16, ui64


def to_device(array: Array, device: torch.device) -> torch.Tensor:
    """``array`` on ``device``. On the CPU it shares the memory of an array in C order that can be
    written, and whose dtype torch has."""
    dtype = as_dtype(array.dtype)
    plain: Any = array
    if is_wider(dtype):
        plain = array.astype(CARRIERS[dtype])
    elif dtype in FP8:
        plain = _in_c_order(array).view(np.uint8)
    elif dtype is ui64:
        plain = _in_c_order(array).view(np.int64)
    elif dtype is bf16:
        plain = _in_c_order(array).view(np.int16)
    tensor = torch.from_numpy(_in_c_order(plain))
    if dtype is bf16:
        tensor = tensor.view(torch.bfloat16)
    return tensor if device.type == "cpu" else tensor.to(device)


def _in_c_order(array: Array) -> Array:
    """The elements one after the other, where torch may write: it warns of others."""
    if array.flags.c_contiguous and array.flags.writeable and array.flags.aligned:
        return array
    return np.array(array, order="C")


def to_host(tensor: torch.Tensor, type: Type) -> Array:
    """The elements of ``tensor``, which carries values of ``type``. On the CPU the array shares its
    memory where the dtype is the carrier."""
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    dtype = type.dtype
    if dtype is bf16:
        plain = plain.view(torch.int16)
    array = cast("Array", plain.numpy())
    if is_wider(dtype):
        return array.astype(dtype.numpy)
    return array if array.dtype == dtype.numpy else array.view(dtype.numpy)
