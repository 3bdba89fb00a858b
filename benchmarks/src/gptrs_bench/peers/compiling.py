"""Availability of torch.compile."""

from __future__ import annotations

from typing import Any

import torch

from gptrs_bench.peers import PeerError

library: Any = torch  # its types are partly unknown


def check_compiler() -> None:
    """Raise `PeerError` where torch finds no C++ compiler that works."""

    def double(x: torch.Tensor) -> torch.Tensor:
        return x + x

    try:
        library.compile(double)(torch.ones(8))
    except Exception as error:  # of torch, or of the C++ compiler
        lines = (line for line in str(error).splitlines() if line.strip())
        raise PeerError(next(lines, repr(error))) from None
