"""The precision of f32 products on a device: TF32 only where ``GPTRS_TORCH_TENSORFLOAT`` asks for
it.

torch keeps this in flags of the process; they are as the user left them after a call.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

from gptrs import settings


@contextmanager
def f32_products(device: torch.device) -> Generator[None]:
    """In the block products and convolutions of f32 on ``device`` are those of f32."""
    flags: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)
    wanted = settings.torch_tf32()
    if device.type != "cuda" or all(flag.allow_tf32 == wanted for flag in flags):
        yield
        return
    before = [flag.allow_tf32 for flag in flags]
    for flag in flags:
        flag.allow_tf32 = wanted
    try:
        yield
    finally:
        for flag, value in zip(flags, before, strict=True):
            flag.allow_tf32 = value
