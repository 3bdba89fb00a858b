"""Packed forms of weights: panels of a matrix, transformed taps of Winograd."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from gptrs.kernels.gemm.weight_elements import WeightType


class Panels(NamedTuple):
    """The packed form of a weight matrix: its stored layout, and its elements
    (`kernels.gemm.packing`)."""

    transposed: bool  # [depth, columns] rather than [columns, depth]
    weights: WeightType
    depth: int
    columns: int
    compressed: bool = False
    """Whether in a container of `kernels.weight_compression.format`."""

    @property
    def bytes(self) -> int:
        """The size of its elements."""
        return self.depth * self.columns * (4 if self.weights == "f32" else 2)


class WinogradPanels(NamedTuple):
    """The packed form of Winograd-transformed taps [3, 3, C, O] (`kernels.conv.winograd`)."""

    tile: Literal[2, 4]
    channels: int
    outputs: int

    @property
    def bytes(self) -> int:
        """The size of its elements."""
        planes = (self.tile + 2) ** 2  # `winograd.planes`, whose module is not for all programs
        return 4 * planes * self.channels * self.outputs


Form: TypeAlias = Panels | WinogradPanels
"""A packed form of a weight."""
