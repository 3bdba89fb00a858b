"""The OpenCL backend: the kernels of the C family on the devices of OpenCL drivers.

| module | contents |
|---|---|
| `dialect` | the OpenCL dialect: kernels as ``__kernel`` functions |
| `driver` | what the driver finds: devices, and the package that asks it |
| `device` | a device: its queue, compiled kernels, memory, and the weights on it |
| `backend` | `OpenCLBackend` |

A run enqueues its kernels in order and waits once, at its end. Instructions without a kernel run on
the host by their NumPy meaning, which the report names.
"""
