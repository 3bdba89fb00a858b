"""HIP with kernels of the C family (`c_family.gpu`), compiled at run time by hipRTC.

| module | contents |
|---|---|
| `libraries` | the two libraries of ROCm, and their calls |
| `hiprtc` | the compiler: text in, code for the current GPU out |
| `driver` | what the driver of AMD finds |
| `device` | `HipGpu`: a GPU with its stream and memory |
| `backend` | `HiprtcBackend`, and what the name ``rocm`` stands for |
"""
