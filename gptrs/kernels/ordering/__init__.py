"""Kernels along one axis of an array: sorting, positions of extremes, cumulative sums.

| module | content |
|---|---|
| `lines` | the argument block: an array as lines along an axis |
| `cumulative` | sums, products, maxima and minima up to each element of a line |
| `running` | the same of contiguous lines in vector registers, as LLVM IR |
| `keys` | elements as integers in the same order |
| `sort` | lines in order: elements, positions, the first of them |
| `selection` | the first few of a long line |
| `sort_keys` | quicksort and radix sort of keys |
| `sorting_network`, `partition` | their parts in vector registers, as LLVM IR |
| `arg_extreme` | the position of the greatest or least element |
| `extreme_position` | the same of a contiguous line, as LLVM IR |

What runs when: `scan`, `sort` and `arg_extreme` of `gptrs.backends.faer.calls` claim the ops and
add steps with these kernels. A *line* is the elements along the axis of the op, for one position
along all other axes. Threads share the lines; one line is read by one thread. Operands are read
where they lie, with strides.
The kernels are Python source for `gptrs.kernels.compiler.compile.compile_source`, one generator for
all dtypes.
"""
