"""Native CPU kernels: their generators, their compiler, and the drivers that run them on threads.

A *kernel* is a native function ``void(intp arguments, intp first, intp last)``: the address of its
*argument block* (64-bit words: pointers and sizes, in the order of a constant such as
`gptrs.kernels.gemm.product.GEMM_ARGUMENTS`), and a half-open range of its parallel *extent*.

| folder | content |
|---|---|
| `gemm` | matrix products, packing, dot products |
| `attention` | fused attention with online softmax |
| `conv` | convolutions, Winograd, depthwise, pooling |
| `ordering` | sorting, positions of extremes, cumulative sums, along an axis |
| `indexing` | elements read and written where indices say |
| `gufunc` | NumPy's inner loops over LAPACK and pocketfft |
| `rowwise` | norms, softmax, reductions, rows by index, strided copies |
| `weight_compression` | lossless compression of packed weights |
| `compiler` | LLVM IR builder, compilation, object cache, loading |
| `driver` | step tables, worker pool, Numba driver, thread counts |
| `native_call` | the native function of calls that were seen before |
| `joint` | several kernels over one extent, as one step (a module) |
| `stage_chain` | kernels that read each other's results, block by block (a module) |
| `philox` | random numbers (a module) |
| `vector_math` | exp, log, tanh, erf and activations on vectors of f32 (a module) |
| `vector_math64` `trigonometry` `vector_power` | the same of f64; sin, cos; pow (modules) |
| `scalar_functions` | these functions for generated loops (a module) |

What runs when: a backend (`gptrs.backends.faer`) compiles the kernels of a plan
(`compiler.compile.compile_built` for the generators of this package, `compile_loop` for its
fused loops), fills argument blocks and a step table, and calls a driver, which runs the steps one
after the other, each split over threads by its extent. Kernels are plain functions over arrays:
no Python objects, no allocation, no threads of their own, no exceptions; a failure is a code in the
plan's status. They can be run and timed alone (``kernel(arguments, first, last)``).

Vector levels: a generator writes LLVM IR for a level of vector instructions (`compiler.isa`); sums
have a fixed order, documented as "order rule" in each module, so that results do not depend on
threads or on the other rows of a batch.
"""
