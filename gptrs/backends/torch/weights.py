"""Parameters on a device: uploaded once for the process, kept in the parameter cache.

A plan looks them up when it first meets them, and compares their identities in later calls, as
`gptrs.backends.faer.run` does: a Parameter's elements never change, and another model has other
parameters. What the cache evicts is uploaded again.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from threading import get_ident
from typing import Any, cast

import torch

from gptrs.backends.parameter_cache import parameter_cache
from gptrs.backends.torch.transfer import to_device
from gptrs.backends.weight_residency import Lease, next_use
from gptrs.identity_key import identities
from gptrs.ir.parameter import Parameter

Tensors = Sequence[torch.Tensor]


class Weights:
    """The parameters of a plan on its device. Calls at the same time have a lease each."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._free: list[tuple[Lease, Tensors]] = []

    def take(self, parameters: Sequence[Parameter]) -> tuple[Lease, Tensors]:
        """A lease, to be given back, and the tensors of ``parameters``."""
        try:
            lease, tensors = self._free.pop()
        except IndexError:
            lease, tensors = Lease(), ()
        lease.running, lease.used = get_ident(), next_use()
        given = identities(parameters)
        if given != lease.given:
            try:
                tensors = self._load(lease, parameters)
            except BaseException:
                lease.end()
                lease.running = 0
                raise
            lease.given = given
        return lease, tensors

    def give_back(self, lease: Lease, tensors: Tensors) -> None:
        """End the use of a lease."""
        lease.running = 0
        self._free.append((lease, tensors))

    def _load(self, lease: Lease, parameters: Sequence[Parameter]) -> Tensors:
        lease.end()
        tensors: list[torch.Tensor] = []
        held: list[object] = []
        for parameter in parameters:
            tensors.append(self._tensor(lease, parameter))
            # Ids of freed parameters are used again.
            held.append(weakref.ref(parameter, lease.end))
        lease.held = held
        return tensors

    def _tensor(self, lease: Lease, parameter: Parameter) -> torch.Tensor:
        def make() -> Any:
            tensor = to_device(parameter.numpy(), self._device)
            if self._device.type != "cpu":
                parameter.release()  # its elements can be loaded again
            return tensor

        form = ("torch", str(self._device))
        found = parameter_cache.get(lease, parameter, form, parameter.bytes, make)
        return cast("torch.Tensor", cast("object", found))
