"""The fast path of a jitted call: argument key, guard, plan, without flattening or tracing.

A call that equals an earlier one is answered from the call cache of its function; from the second
hit on mostly by a native function, in a tenth of the time (`gptrs.jit.native_call`). All else takes
the slow path of `gptrs.jit.function`, which collects the full key, finds or traces the
program, runs it, and stores the call here.

| module | contents |
|---|---|
| `fast_key` | the key of a call from its arguments, and the arrays and objects among them |
| `call_cache` | fast key → `CachedCall`: guard, program, donated arguments, result tree |
| `read_log` | the reads of the traversal (`gptrs.jit.captures`) as repeatable steps |
| `object_graph` | readers for the parts of an object: wrappers, containers, attributes |
| `assume_unchanged` | ``ptir.assume_unchanged``: guards evaluated once for a loop of calls |
| `gptrs.jit.guards` | the guard: repeats the steps of a read log and compares by identity |

Steps of a hit
    1. `CallCache.find` binds the arguments to parameters (memoised by positional count and keyword
       names) and builds the fast key.
    2. The key finds a `CachedCall`.
    3. Its guard repeats all reads that the traversal made for that call, unless an
       ``assume_unchanged`` block has done so. Donated arguments must share memory with no other.
    4. The program must not have been evicted from the program cache; it becomes the most recently
       used one.
    5. The plan runs on the arrays and the parameters that the guard read; the result tree wraps the
       arrays as Tensors in the containers that the function returns.

In the key
    Positional count and keyword names; the generation of registered containers; the backend and
    eager mode of the context (``ptir.backend``, ``ptir.eager``) and its ``ptir.debug_nans``;
    override policies and the number of registered implementations; the raw text of the variables
    that calls depend on (GPTRS_EAGER, GPTRS_BACKEND, GPTRS_OVERRIDES, GPTRS_DEBUG_NANS,
    GPTRS_CHECK and `settings.REWRITING`). Then, for each argument: type, shape, dtype and weakness
    of a Tensor; dtype and shape of an array; the type alone of a number; the value of a bool, a
    string, bytes or None; type, labels and children of a container; the id of a module or another
    object; the value of a static argument. Shapes are exact: with ``dynamic=`` each new size takes
    the slow path once, where it finds the program without a trace.

What a guard reads
    The function's code, its closure cells and the globals that its code names; then whatever the
    traversal read from there and from the objects among the arguments: attributes, elements of
    containers, methods and classes of user code, defaults of called functions. Values are compared
    by identity, captured arrays up to 64 KB by their elements and larger ones by identity
    and checksum. Names that were absent must still be absent. Parameters are read on the way and
    handed to the plan; when one of them is freed, the guard fails from then on.

Cache levels of a call, from the innermost state outwards
    1. call cache (here): at most 64 calls of each function, least recently used out
    2. program cache (`gptrs.jit.cache`): GPTRS_CACHE_SIZE programs of each function, by full key
    3. bindings of a plan to sizes (`gptrs.backends.faer.plan`): at most 64 of each plan
    4. derived and packed weights (`gptrs.jit.derived`, `gptrs.backends.parameter_cache`)
    5. compiled kernels in the process, and on disk below GPTRS_CACHE_DIR

A call leaves the fast path when
    - ``ptir.debug_nans`` or GPTRS_CHECK watches it (`gptrs.jit.numerics.watch`);
    - it is traced as a part of another function (no caching: it is inlined), or runs in eager mode;
    - an argument has no fast key: a donated or leaked Tensor, a subclass of Tensor, a container
      whose labels are neither strings nor integers, a static argument with a hash of its own that
      is no plain value;
    - its key is new, or its guard fails: a global, attribute, closure or captured array changed;
    - two arguments share memory and one of them is donated;
    - its program was evicted or `clear_cache` was called;
    - the call was not stored: the traversal cannot be repeated (container keys that may hold large
      objects, attributes that another thread added meanwhile), or the trace met a parameter that
      the traversal did not.
    A failed guard costs a traversal, and a retrace only if what changed is part of the full key.

Measured cost (benchmarks/README.md, benchmarks/log/calls_and_starts.md)
    gelu(x @ w + b), 1 × 64 by 64 × 64, one thread: 9.6 to 10.5 µs for the whole call; 1.0 as a
    native call. Comparing the 788 values that a guard of MobileNetV2 reads takes 8 µs; guards
    evaluated once in a loop of calls (`assume_unchanged`) save 0.12 ms of a decode step.

Where to look
    ``fn.retraces()`` and GPTRS_DEBUG=1 give the reason of each trace, ``fn.cache_info()`` the hits
    (of both caches together) and misses, ``fn.explain(...)`` the steps of the plan that a call
    runs.
"""
