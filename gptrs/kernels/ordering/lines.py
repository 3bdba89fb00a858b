"""The argument block of kernels along an axis: an array as tiles of lines.

    for outer in axes[0], axes[1], ...           # any number of axes: their indices by division
        for tile in columns                      # extent: outer · tiles
            lines begin at  outer strides + column · x_column
            element i of a line is at           + i · x_step

    | x | result | ... | count | steps | columns | tile | axes · (extent, stride of x, of result) |

The columns of a tile are the lines beside each other. Where they are contiguous, kernels traverse
them in vectors for each element of the axis; where the axis is, they traverse line by line.
"""

from __future__ import annotations

LINE_ARGUMENTS = (
    *("x", "result", "count", "x_step", "result_step"),
    *("columns", "x_column", "result_column", "tile", "tiles", "axes"),
)
"""The argument block, in order; then ``axes`` triples (extent, stride in x, stride in the result)
of the axes around ``columns``, the outermost first.

A line has ``count`` elements at distances of ``x_step``; lines of a tile are ``x_column`` apart,
and there are ``tiles`` tiles of ``tile`` columns (the last may have fewer) in ``columns``.
All distances count elements.
"""

TILE = 256
"""The most columns of a tile."""

OFFSET = """
def offset(axes, count, index, which):
    total = 0
    for k in range(count - 1, -1, -1):
        extent = axes[3 * k]
        rest = index // extent
        total += (index - rest * extent) * axes[3 * k + which]
        index = rest
    return total
"""
"""``offset(axes, count, index, which)``: where position ``index`` of the axes begins, in the array
whose strides are the words ``which`` of the triples."""


def unpacked(arguments: tuple[str, ...]) -> str:
    """Statements that read the words of an argument block into variables of their names."""
    words = [f"    {name} = w[{place}]" for place, name in enumerate(arguments)]
    return "\n".join(
        ["    w = words(arguments)", *words, f"    triples = shifted(w, {len(words)})"]
    )
