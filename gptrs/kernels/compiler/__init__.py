"""From a kernel's IR builder or Python source to a loaded native function, with a cache on disk.

| module | content |
|---|---|
| `compile` | the interface: `compile_ir`, `compile_built`, `compile_source`, `compile_loop` |
| `ir_builder` | `Function`: llvmlite's IR builder with loops, vectors, masks, prefetch |
| `isa` | vector levels (AVX-512, AVX2, NEON, generic), their tile sizes, LLVM targets |
| `cache_key` | `Code`, the input of a compilation, and its content hash |
| `object_cache` | object code on disk: one checksummed file per kernel |
| `cache_entry`, `cache_folder` | the format of such a file; where they are, and what is one |
| `cache_upkeep` | report, check, prune and clear the folder: ``gptrs cache`` |
| `loaded_object` | `Library`: object code loaded once; batches of kernels compiled together |
| `compile_processes` | worker processes that compile in parallel |
| `compile_job` | `CompileJob`: serialisable text and target for a worker process |
| `codegen` | LLVM: parse, optimise, emit object code, link into the process |
| `numba_lowering` | Python source to LLVM IR with Numba (imported on a cache miss alone) |
| `intrinsics` | the names that Python source may use, as Numba intrinsics (likewise) |
| `line_intrinsics` | those of sorts, extremes and cumulative operations (likewise) |
| `number_functions` | conversions of narrow floats, integer and complex arithmetic (likewise) |
| `named_lowering` | Numba's pipeline with variables' names for LLVM values (likewise) |
| `parallel_loop` | the source of a loop as a Python module that runs it alone |
| `symbols` | the functions that object code may call, and the ones that it does |
| `shield` | compilation in a thread that signal handlers cannot interrupt |

What runs when:

    compile_built(builder, isa, ...)   compile_ir(text)   compile_source(python)
                    └──────────────┬──────────┴───────────────┘
                        Code ──▶ cache_key (hash of text or builder and sources, target, versions)
                                   │
                loaded in this process? ──yes──▶ address
                                   │ no
                    object_cache: file? ──yes──▶ codegen.load ──▶ address
                                   │ no
      compile_processes / this process: CompileJob ──▶ [numba_lowering] ──▶ codegen.optimised
                                   │                         ──▶ emit_object (symbols checked)
                    object_cache.store, codegen.load ──▶ address

Inside a block of `loaded_object.together` misses are collected and compiled at its end, on all
cores. A builder's IR is written only on a miss: the key has the builder's name, its arguments and
the sources of this package in place of the text. Machine code is never unloaded.
"""
