"""`Run`: the state of one call of an emitted function: sizes, constants, checks, host steps.

Elements that have no result (an index out of range, a division by zero) are found by checks, truth
values that stay on the device until `settle` reads all of them at once: at the end of the call,
before an effect, and before donated memory is overwritten. Where one holds, `CheckFailed` ends the
run, and the plan runs the call again by the reference meaning, which has the words of the error.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

HostStep = Callable[["Run", tuple[Tensor, ...]], tuple[Tensor, ...]]
_MOST_CHECKS = 64  # of a loop, whose steps have some each


class CheckFailed(Exception):  # noqa: N818 - no error of its own: the reference has the words
    """An element has no result."""


class Run:
    """One call: what the emitted function asks for besides its arguments."""

    __slots__ = ("_checks", "_host", "constants", "device", "sizes")

    def __init__(
        self,
        device: torch.device,
        sizes: Mapping[str, int],
        constants: Sequence[Tensor] = (),
        host: Sequence[HostStep] = (),
    ) -> None:
        self.device, self.sizes, self.constants = device, sizes, constants
        self._host = host
        self._checks: list[Tensor] = []

    def check(self, wrong: Tensor) -> None:
        """Fail, later, if any element of ``wrong`` is true."""
        if wrong.numel() and not wrong.is_meta:
            self._checks.append(wrong.any())
        if len(self._checks) > _MOST_CHECKS:
            self._checks = [torch.stack(self._checks).any()]

    def fail(self) -> Any:
        """Fail now: shapes have no result, whatever the elements are."""
        raise CheckFailed

    def settle(self) -> None:
        """Read the checks made so far. Raises `CheckFailed` where one holds."""
        if self._checks:
            made, self._checks = self._checks, []
            if bool(made[0] if len(made) == 1 else torch.stack(made).any()):
                raise CheckFailed

    def host(self, number: int, *operands: Tensor) -> tuple[Tensor, ...]:
        """The results of an instruction that has no form in torch, by its NumPy meaning: operands
        and results travel."""
        return self._host[number](self, operands)

    def effect(self, number: int, *operands: Tensor) -> tuple[Tensor, ...]:
        """`host` for an instruction that acts: not after an error."""
        self.settle()
        return self._host[number](self, operands)
