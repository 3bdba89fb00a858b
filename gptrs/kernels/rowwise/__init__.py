"""Row-wise and data-movement kernels: norms, softmax, reductions, rows by index, strided copies.

| module | content |
|---|---|
| `norm` | layer_norm, rms_norm and softmax over the last axis |
| `rotary` | rotary positions: pairs of elements turned by tables |
| `reduce` | reductions of a short array, called from generated loops |
| `take` | rows of a weight by index |
| `block_copy` | strided n-dimensional copy and fill: concat, pad, tile, dynamic slices |
| `interleave` | copy of two to four rows whose elements alternate in the result |
| `transpose` | copy of permuted arrays, in tiles that are transposed in registers |

What runs when: `gptrs.backends.faer.calls` (`rowwise`, `take`, `dynamic_slices`, `concat_pad`)
claims the composites and movement ops, and adds a step with one of these kernels; copies of
permuted arrays come from `gptrs.backends.faer.strided_copy`. Everything else that is elementwise or
a reduction is fused into generated loops (`gptrs.backends.faer.render`), which use `reduce` and
`gptrs.kernels.scalar_functions`. Threads share the extent: rows, indices, or rows of a block. All
kernels read their operands where they lie, with strides.
"""
