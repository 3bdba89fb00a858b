"""Comparisons of a function's results between ways to run it, and what goes wrong where.

All tools work on the traced program of one call (`traced_call`). A way (`ways`) runs it, or a part
of it: jit, without passes, precise, the reference backend, eager, in f64, through torch.
`rows` runs all instructions both ways; `first_deviation` searches passes and lowered programs.

| module | contents |
|---|---|
| `traced_call` | a traced program with the arguments of one call |
| `ways` | the ways to run a program, by name |
| `widen` | a program with its floats in f64 |
| `torch_ops` | a program's ops through torch |
| `rows` | rows of two ways, with own and accumulated errors |
| `agreement` | bounds of accumulated errors, measured against f64 |
| `first_deviation` | the first pass or lowered instruction that deviates from the reference |
| `compare` | ``ptir.compare`` |
| `check` | GPTRS_CHECK: results against the reference backend's |
| `nans` | ``ptir.debug_nans``: the origin of a NaN in a result |
| `watch` | what GPTRS_CHECK and ``ptir.debug_nans`` do around the run of a call |
"""
