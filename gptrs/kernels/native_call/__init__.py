"""The native function of calls that were seen before (`gptrs.jit.native_call`), as LLVM IR.

| module | contents |
|---|---|
| `rows` | the instruction format of checks |
| `fields` | the words of a record: checks, launch, results |
| `layout` | offsets in CPython's and NumPy's objects, checked in this interpreter |
| `interpreter` | runs the rows |
| `launch` | takes the binding, makes arrays, runs the step table, wraps |
| `emit` | the builder of both |
"""
