"""Native calls: a call that was seen before, checked, run and wrapped by one native function.

The third of three paths of a jitted call, and the first that is tried. It does what the fast path
does (`gptrs.jit.fast_path`), with the objects' addresses instead of Python's operations: a tenth of
the time. The fast path stays the meaning; a call without a matching record takes it, and so does
whatever the records cannot express.

| module | contents |
|---|---|
| `native` | the function, as Python calls it |
| `record` | what is checked, run and returned for one cached call: words |
| `checks` | rows: the comparisons and loads that a match consists of |
| `argument_checks`, `context_checks`, `guard_checks` | rows for arguments, settings, captures |
| `gptrs.kernels.native_call` | the function's code, and the layout of what it reads |

A call keeps to the fast path when
    - the interpreter is not one whose layout is known (`layout.supported`), or the driver is not
      the pool;
    - an argument is donated, a scalar of NumPy, a subclass of Tensor, or in a container that was
      registered; an array is not contiguous;
    - a guard reads something without rows: large captured arrays, objects with slots, imports
      inside of functions;
    - a step of the plan runs in Python, or the memory of freed results serves a result;
    - the call is made inside of another trace or of ``assume_unchanged``.
"""
