"""The C family: one renderer of kernels, and dialects of it.

Fused regions (`gptrs.backends.fusion`) and the ops that no loop computes become kernels in a
language that C11 and OpenCL C share; ``vocabulary.h`` says where these differ. A dialect adds what
surrounds a kernel; that of WGSL, which is no C, translates it.

| module | contents |
|---|---|
| `element_types`, `scalars` | loads, stores, numbers; elementwise ops on one element |
| `index_text` | extents and positions as text |
| `kernel` | a kernel as text, and a call of it |
| `expressions`, `loops` | fused regions as kernels |
| `kernels/` | products, attention, windows, indices, movement: one description for all dialects |
| `schedule` | the steps of a program in order |
| `memory` | arrays of arguments, results, constants; slots that intermediate values share |
| `size_checks` | sizes at which there is no result |
| `device`, `device_plan`, `device_backend` | kernel calls in order: what devices share |
| `device_function` | a kernel as a function of OpenCL C or of the C++ of GPUs |
| `gpu`, `gpu_backend`, `gpu_dialect` | GPUs that are programmed in C++: CUDA and HIP |
| `coverage` | which ops have a form, for the documentation |
| `control`, `control_runs` | the steps of loops; branches and loops on devices |
| `c_plan`, `c_function`, `c_control` | what a program does in C; its functions; its loops |
| `c11`, `c_target` | the C11 dialect: a program as a file that runs without Python |
"""
