"""Kernels that read and write where an array of indices says: take, gather, scatter, segments.

| module | content |
|---|---|
| `loop_nest` | the argument block and the loops: a table, its indices, and the elements moved |
| `gather` | elements or rows of the table read at indices |
| `scatter` | elements or rows of the table replaced, added, multiplied or compared at indices |

What runs when: `gptrs.backends.faer.calls.indexing` claims the ops and adds steps with these
kernels. Threads share tiles. Elements that meet at one place of the table are combined by one
thread, in row-major order, so that bits do not depend on the threads. An index out of range is
reported in the plan's status, and nothing is read or written for it. The kernels are Python source
for `gptrs.kernels.compiler.compile.compile_source`, one generator for all dtypes.
"""
