"""CUDA with kernels of the C family (`c_family.gpu`), compiled at run time by NVRTC.

| module | contents |
|---|---|
| `nvrtc` | the compiler: text in, code of an architecture out |
| `driver` | what the driver of NVIDIA finds, and its calls |
| `device` | `CudaGpu`: a GPU with its stream and memory |
| `backend` | `NvrtcBackend`, and what the name ``cuda`` stands for |
"""
