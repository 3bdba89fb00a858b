"""Triton as a dialect for the hot kernels of GPUs: products, and attention, whose tiles it gives to
tensor cores.

A tile program is a `gptrs.backends.c_family.kernel.Kernel` whose text is Python that Triton
compiles: the arguments are the same as in C, and an item of its extent is a program. Where Triton
is installed, `nvrtc` and `hiprtc` take these instead of the kernels in C (`TILE_KERNELS`).

| module | contents |
|---|---|
| `tiles` | the text of a tile program around its body; expressions of C as Python |
| `product` | ``dot_general`` |
| `attention` | ``attention`` |
| `table` | the kernels of a device with Triton |
| `compiler` | a tile program as code for a GPU, compiled ahead of time |
"""
