"""``ptir.jit``: Python function → traced program → lowered program → plan → result.

The compiler's front end. A jitted function is traced once per key (argument types, static values,
and the Python state that its code reads), the passes rewrite the program, the backend plans it, and
later calls with an equal key run the plan.

What a call runs, in order (`function.JitFunction.__call__`):

1. ``native_call``: one native function compares the call with those that it has records of, and
   answers it. Otherwise ``fast_path``: the call cache looks up a key of the arguments, and a guard
   compares the Python state that the function reads. A hit runs the plan at once.
2. On a miss, ``arguments`` flattens and classifies the arguments, ``captures`` reads the closures,
   globals and attributes that the code may use, and both together are the key of the program.
3. ``cache`` looks the key up among the function's programs.
4. On a miss there too (a retrace, whose reason ``differences`` words), ``lower`` traces the
   function (``trace``), runs the passes with the implementations that ``chooser`` picks, and has
   the backend plan the result. ``derived`` adds the parameters that passes computed from others.
5. The plan runs; ``fast_path.call_cache`` stores the call for step 1.

``ahead_of_time`` runs step 4 alone, for arguments or types of them (``f.lower``), and gives a
function of one program.

| module | contents |
|---|---|
| `advice` | remedies for retraces, by their reasons |
| `ahead_of_time` | ``f.lower(...)``, ``.compile()``: one program as a function of its own |
| `arguments` | flattening and classification of a call's arguments |
| `benchmark` | autotuning: timed choice among the implementations of a composite |
| `cache` | program cache of one function: LRU, counters, reasons of misses |
| `call_form` | the calls that a compiled program serves, and comparison of a call with them |
| `captures` | traversal of everything that a function reads besides its arguments |
| `chooser` | implementation selection for composites by the override policies |
| `code` | names that bytecode reads; which modules count as library code |
| `decorator` | ``ptir.jit`` |
| `derived` | derived parameters (packed, folded, transposed weights), memoised by their sources |
| `differences` | the difference between two keys, worded for retrace reasons |
| `fast_path/` | call cache, fast key, read log, guards' readers, ``ptir.assume_unchanged`` |
| `function` | `JitFunction` |
| `guards` | guards: the recorded reads repeated and compared by identity |
| `impure_calls` | warnings of impure calls that a trace makes |
| `impure_functions` | random numbers, clocks, input: which functions, and what replaces them |
| `lower` | trace, passes, plan; one event after each |
| `miss_report` | GPTRS_EXPLAIN: a line for each trace, a table at exit |
| `modes` | ``ptir.eager`` and ``ptir.backend`` |
| `named_calls` | calls by name in bytecode |
| `native_call/` | calls that were seen before, as one native function |
| `no_retrace` | ``ptir.no_retrace``: tracing and compiling as errors |
| `numerics/` | ``ptir.compare``, ``ptir.debug_nans``, GPTRS_CHECK: where numbers go wrong |
| `options` | options of ``ptir.jit``, by argument name |
| `outer_state` | the Python state that a traced function can reach: changes, restoration |
| `overrides` | ``ptir.overrides`` and the other sources of implementation policies |
| `pickled_name` | pickling by reference |
| `second_trace` | GPTRS_DEBUG: side effects, and traces that differ |
| `trace` | one trace: the function runs on tracers and leaves a program |
| `vmap` | ``ptir.vmap``: a function of one example over a batch of them |
"""
