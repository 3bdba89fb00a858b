"""Debugging views of programs, passes and plans: text, diffs, dumps, rewrite fuel.

Nothing here changes how a program runs. The modules turn events (`gptrs.events`) and plan reports
into text; `gptrs.jit` and the command line are their callers.

| module | contents |
|---|---|
| `call_groups` | the calls of modules and functions that instructions come from, as a tree |
| `benchmark` | event: the measured implementations of a composite |
| `diff` | unified diffs between forms of one program, with stable value names |
| `error_bounds/` | how far a backend may be from an op's NumPy meaning, by element |
| `dump` | GPTRS_DUMP: programs, plans and kernels as files |
| `explain` | ``fn.explain``: a plan's report as a table |
| `fuel` | GPTRS_FUEL: a process-wide limit on rewrites, for ``gptrs bisect`` |
| `lowering` | events of trace, passes and plan, and the record of one lowering |
| `machine_limits`, `measure_limits` | measured GFLOP/s and GB/s of the CPU |
| `numeric_diff/` | differences of two runs by instruction; the origin of a NaN |
| `profile/` | ``gptrs.profile`` and ``fn.profile``: where the time went |
| `view/` | ``fn.view``: program, passes and plan as an HTML page |
| `passes` | ``fn.passes``: diffs of all passes, as text and HTML |
| `stderr` | text on stderr that never fails |
| `watch` | GPTRS_DEBUG and GPTRS_DUMP applied to one trace |

During one trace: `watch.watched` registers listeners → `gptrs.jit.lower` emits `ProgramTraced`,
`PassRan`, `ProgramLowered`, `ProgramPlanned` → `Lowering` and `Dump` record them → text on stderr
and files in the dump folder.
"""
