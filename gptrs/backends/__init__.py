"""Backends: a lowered program becomes a plan of steps that run it.

A `Backend` claims composites while the passes run, and turns the lowered program into a `Plan`.

| module | contents |
|---|---|
| `base` | the interface: `Backend`, `Plan`, `DeviceInfo`, and reports for `explain` |
| `discovery` | backends by name: built in, registered, from entry points of packages |
| `selection` | the backend to take: what is available, and has the memory that is required |
| `probe` | asks drivers in a process of their own |
| `summary` | the backends as text and for scripts |
| `host` | this machine: processor, caches, memory |
| `reference` | the NumPy meaning of each instruction; the oracle of all other backends |
| `fusible` | which instructions a fused loop can compute |
| `fusion` | loop fusion: the partition of a program into regions |
| `inlining` | the expression of each fused value over stored values |
| `regions` | a region: one loop nest with its axes merged |
| `views` | strided views and the expressions of fused loops |
| `memory_operands` | the stored value behind an operand that only moves its elements |
| `machine` | the measured costs that fusion and vectorization compare |
| `vectorization` | whether the vectors of a region go along its rows or across them |
| `partial_reductions` | reductions of few rows, in chunks that threads share |
| `kept_values` | values that a region keeps in the memory of its result between two loops |
| `value_numbering` | equal numbers for equal expressions of a region |
| `operation_counts` | scalar operations of a region, to limit recomputation |
| `region_time` | an estimate of the time of a region, by `machine` |
| `recomputation` | stored values that are computed again in less time |
| `expansion`, `index_expansions` | ops as others with kernels: the driver; narrow sums at indices |
| `parameter_cache` | packed and derived forms of parameters: limit, eviction, release |
| `weight_residency` | leases of plans on these forms |
| `faer/` | the native CPU backend |
| `c_family/` | kernels in the C that dialects share; plans of devices; programs as C |
| `opencl/` | devices of OpenCL drivers |
| `webgpu/` | devices of Vulkan, Metal, Direct3D 12 and OpenGL drivers, by WebGPU |
| `cuda/` | GPUs of NVIDIA, by kernels that NVRTC compiles |
| `torch/` | devices that torch has |
| `device_table` | what these compute on the host, for the documentation |

Loop fusion runs in this order: `fusible.can_fuse` selects instructions, `fusion.fuse` decides which
values are stored, `inlining` builds expressions over `views`, `regions` arranges the loops,
`operation_counts` (with `value_numbering`) finds recomputation, and `fuse` stores more values until
nothing changes; `recomputation` inlines those again that `region_time` finds cheaper to compute. A
backend generates one kernel for each region.
"""
