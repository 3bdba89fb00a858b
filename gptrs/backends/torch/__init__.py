"""The torch device backends: programs as Python functions over torch ops, on any of its devices.

From a lowered program to a call, in this order:

1. claims: composites that torch has (`op_table.composites`) stay whole
2. `lifetimes`: which values share memory, what is freed where, which updates need no copy
3. `source`: one function of Python, an instruction a line, by the expressions of `op_table`
4. `plan`: compiles it, and calls it with tensors; `weights` uploads parameters once
5. `run`: checks of elements that have no result, and steps that the host does

| module | contents |
|---|---|
| `backend` | `TorchBackend`, and the names ``cuda``, ``rocm``, ``metal``, ``xpu``, ``torch`` |
| `devices` | what torch finds on this machine |
| `declines` | dtypes that a device does not have |
| `carriers` | the torch dtype that carries the elements of a dtype |
| `op_table/` | by op the expression in torch |
| `functions/` | ops that are more than one function of torch, as emitted functions call them |
| `lifetimes`, `source` | the emitted function |
| `plan`, `run`, `weights` | `TorchPlan`; one call; parameters |
| `transfer`, `device_array` | NumPy arrays to tensors and back; tensors of results |
"""
