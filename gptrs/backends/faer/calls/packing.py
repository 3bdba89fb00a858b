"""Weights of products in panels: their form, size and the kernels that pack them."""

from __future__ import annotations

from gptrs.backends.faer.calls.base import kernel
from gptrs.backends.faer.calls.forms import Panels
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.packing import pack_columns_kernel, pack_rows_kernel, panel_count
from gptrs.kernels.gemm.weight_elements import WeightType, weight_bytes
from gptrs.kernels.weight_compression.format import COMPRESSIBLE, DEPTH_STEP


def packing_kernel(isa: Isa, transposed: bool, weights: WeightType) -> Kernel:
    """The kernel that packs rows of a weight. Arguments: source, panels, two sizes of the stored
    matrix, its stride, and the height of a panel where rows cross panels, its width otherwise."""
    if transposed:
        return kernel(pack_columns_kernel, isa, weights)
    return kernel(pack_rows_kernel, isa, isa.tile_columns, weights)


_COMPRESSED_FROM = 2**18
"""The number of elements from which a weight is compressed: models with smaller ones stay in
cache."""


def product_panels(transposed: bool, weights: WeightType, depth: int, columns: int) -> Panels:
    """The packed form of a weight for a product."""
    large = depth * columns >= _COMPRESSED_FROM
    compressed = weights in COMPRESSIBLE and large and depth % DEPTH_STEP == 0
    return Panels(transposed, weights, depth, columns, compressed)


def panel_bytes(isa: Isa, weights: WeightType, depth: int, columns: int) -> int:
    """The size of a packed weight."""
    return panel_count(isa, columns) * isa.tile_columns * depth * weight_bytes(weights)
