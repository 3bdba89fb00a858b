"""The table of ops in torch: by op the expressions that emitted functions have for it.

| module | rows |
|---|---|
| `row` | `Row`: an expression and what it is for |
| `elementwise` | arithmetic, comparisons, elementary functions, conversions |
| `arrays` | reductions, products, movement, indices, windows, order, random numbers, matrices |
| `composites` | what is claimed whole: matmul, attention, norms, convolutions, activations |

Control flow, effects and constants are written by `gptrs.backends.torch.source`. An instruction
without a row runs on the host by its NumPy meaning.
"""

from __future__ import annotations

from gptrs.backends.torch.op_table import arrays, composites, elementwise
from gptrs.backends.torch.op_table.row import Row, Rows
from gptrs.ir.program import Instruction, Operation

ROWS: dict[Operation, Rows] = {**elementwise.ROWS, **arrays.ROWS, **composites.ROWS}
"""All rows, by op."""


def row_of(instruction: Instruction) -> Row | None:
    """The form of an instruction in torch; None where it has none."""
    rows = ROWS.get(instruction.op, ())
    return next((row for row in rows if row.accepts(instruction)), None)
