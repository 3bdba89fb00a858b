"""Alternative implementations of composites. Importing this package registers them.

| module | contents |
|---|---|
| `registry` | ``ptir.implementation``: registration and its checks |
| `attention` | attention over key blocks with a running maximum and sum |
| `norm` | layer_norm in one pass over its operand |
| `softmax` | softmax in two passes, and online softmax over blocks |
| `blocks` | the block partition of a long axis |

An override picks an implementation for a composite; the pass `choose_implementations` replaces the
instruction by the program of the implementation, before `legalize`.
"""

from gptrs.ir.implementations import attention, norm, softmax

__all__ = ["attention", "norm", "softmax"]
