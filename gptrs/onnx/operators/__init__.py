"""The operators of ONNX by family; importing this fills `gptrs.onnx.table.TABLE`.

| module | contents |
|---|---|
| `elementwise` | arithmetic, comparisons, logic, casts |
| `activations` | activations, softmax, dropout |
| `shapes` | reshapes, slices, joins, padding |
| `indexing` | gather, scatter, top k, sorting out |
| `reductions` | reductions, scans along an axis |
| `products` | matrix products |
| `quantization` | quantised values, their products and convolutions |
| `windows` | convolutions and pooling |
| `sampling` | resizing, grids, regions of interest |
| `normalization` | batch, instance, layer and local norms |
| `recurrent` | RNN, GRU, LSTM |
| `control` | if, loop, scan |
| `creation` | constants, ranges, random numbers |
| `signals` | windows, filters, Fourier transforms |
| `broadcasting` | vectors as operands along an axis |
"""

from gptrs.onnx.operators import (
    activations,
    control,
    creation,
    elementwise,
    indexing,
    normalization,
    products,
    quantization,
    recurrent,
    reductions,
    sampling,
    shapes,
    signals,
    windows,
)

__all__ = [
    "activations",
    "control",
    "creation",
    "elementwise",
    "indexing",
    "normalization",
    "products",
    "quantization",
    "recurrent",
    "reductions",
    "sampling",
    "shapes",
    "signals",
    "windows",
]
