"""The WebGPU backend: the kernels of the C family in WGSL, on Vulkan, Metal, Direct3D 12, OpenGL.

| module | contents |
|---|---|
| `terms`, `translation` | the C of kernels as WGSL: types, statements |
| `vocabulary` | functions of one element (`vocabulary_text/`), and which of them a kernel takes |
| `dialect` | a kernel as a module |
| `words` | elements as words of 32 bits |
| `driver` | the adapters that the package ``wgpu`` finds |
| `memory` | buffers, and those that are used again |
| `device` | an adapter's device: pipelines, one command buffer for many kernels |
| `backend` | `WebGPUBackend` |
"""
