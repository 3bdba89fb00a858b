"""CUDA with kernels of the C family, compiled at run time by NVRTC.

| module | contents |
|---|---|
| `dialect` | the words of CUDA C, and what architectures there are to compile for |
| `nvrtc` | the compiler: text in, code of an architecture out |
| `driver` | what the driver of NVIDIA finds, and its calls |
| `device` | a GPU: compiled kernels, a stream, memory |
| `backend` | `NvrtcBackend`, and what the name ``cuda`` stands for |
"""
