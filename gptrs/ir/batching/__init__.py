"""Batching: a program over one example becomes a program over a batch of them (`ptir.vmap`).

Each op says how: a rule takes its operands, those that differ by example with a batch axis in
front, and returns the results of all examples with a batch axis in front.

| module | contents |
|---|---|
| `over_batch` | a call: the user's function is traced on one example, its program replayed |
| `replay` | `Replay`: a program run over a batch; which examples are active |
| `axes` | the batch axis: put in front, moved, folded into another; rules of many ops |
| `moving`, `reducing`, `indexing`, `contracting`, `windowing`, `random` | rules of primitives |
| `matrices` | rules of linear algebra |
| `composites` | composites that stay whole; the others become their definitions |
| `control` | rules of cond, while_loop, scan, and of instructions run one example at a time |

Importing this package gives every op its rule. Elementwise ops and composites need none.
"""

from gptrs.ir.batching import (
    composites,
    contracting,
    control,
    indexing,
    matrices,
    moving,
    random,
    reducing,
    windowing,
)

__all__ = [
    "composites",
    "contracting",
    "control",
    "indexing",
    "matrices",
    "moving",
    "random",
    "reducing",
    "windowing",
]
