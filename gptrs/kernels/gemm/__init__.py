"""Matrix products: GEMM and GEMV kernels, the packing of their operands, dot products.

All are of f32 with weights of f32, f16 or bf16, but `dot` and those below `weight_elements` in the
table, which are of any element type (`gptrs.backends.faer.calls.tiled_steps`).

| module | content |
|---|---|
| `product` | what all product kernels share: argument block, order of sums, epilogue |
| `blocked` | blocked GEMM for many rows (prefill): loops around the microkernel |
| `microkernel` | register tiles of the blocked GEMM |
| `packed_gemv` | GEMV and GEMM of few rows over packed panels (decode) |
| `gemv` | GEMV over an unpacked matrix [K, N] |
| `narrow` | many short rows times a small matrix: points that are rotated |
| `grouped` | GEMV and GEMM of groups of rows with a packed weight each (mixture of experts) |
| `inline_product` | small products of known sizes, inside of generated loops |
| `gemv_transposed` | GEMV over an unpacked matrix [N, K] |
| `dot` | dot products: one column of C, and vector times vector |
| `packing` | packing of A into tiles and of B into panels |
| `weight_elements` | weights of f32, f16 and bf16: loads, widening, prefetch |
| `number_types` | element types of products of arguments: operands, sums, results |
| `bf16_pairs` | pairs of bf16 that one instruction multiplies and adds up |
| `tiled` | batches of products of arguments, packed or where they lie |
| `mirror` | the upper halves of products A·Aᵀ, of which `tiled` computes the lower ones |
| `gemv_row` | rows of `tiled` that have no second one beside them |
| `register_tile` | register tiles of `tiled` |
| `tile_sums` | passes over a finished tile: totals of the depth, elements of the result |
| `pack_operand` | packing of operands of any strides, widened on the way |

Which kernel runs for C[M, N] = A[M, K]·B[K, N] of f32 (`gptrs.backends.faer.calls.product`):

| case | kernel |
|---|---|
| one column (N = 1), A stored [M, K] | `dot`; with K < 32 `gemv_transposed` |
| one column (N = 1), A stored [K, M] | `gemv` with short blocks |
| B a weight (packed once), M up to `packed_gemv_limit` | `packed_gemv` |
| B a weight, M larger | `packing` of A, then `blocked`; in pairs where A and B are stored in bf16 |
| B not a weight, K and N at most 8, many rows | `narrow` |
| B not a weight, M or N at most 8 | `gemv` or `gemv_transposed`, by how the matrix lies in memory |
| B not a weight, M and N larger, or a batch of small matrices | `tiled`, operands packed or not |

Packing: a weight is packed once, when a plan first needs it
(`gptrs.backends.faer.weight_packing`), and compressed from 1 MB on
(`gptrs.kernels.weight_compression`). Other operands are read where they lie, or packed by a step
of the plan before the product's own step.

Threads: kernels have no threads. Each has an *extent* (panels; panels times row blocks; rows;
segments), and the driver (`gptrs.kernels.driver`) calls it with ranges of that extent. No bit of
the result depends on the ranges, on the kernel that is chosen, or on the other rows of A; products
with one column have an order of sums of their own.
"""
