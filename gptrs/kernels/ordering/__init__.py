"""Kernels along one axis of an array: cumulative sums.

| module | content |
|---|---|
| `lines` | the argument block: an array as lines along an axis |
| `cumulative_sum` | sums up to each element of a line |

What runs when: `gptrs.backends.faer.calls.scan` claims the op and adds a step with these kernels. A
*line* is the elements along the axis of the op, for one position along all other axes. Threads
share the lines; one line is summed by one thread. Operands are read where they lie, with strides.
The kernels are Python source for `gptrs.kernels.compiler.compile.compile_source`, one generator for
all dtypes.
"""
