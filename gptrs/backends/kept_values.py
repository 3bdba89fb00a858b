"""Values that a region keeps in the memory of its result between two loops over a row.

Input: a region. Output: the body of a reduction that the elements of the row are computed from as
well, such as the exponentials of a softmax:

    for k in row: e = exp(x[k] - top); out[k] = e; total += e
    for j in row: out[j] = out[j] / total

Kept where it has the result's dtype and takes more operations than a load and a store; the memory
is in the cache where the row, or the tile of rows, is.
"""

from __future__ import annotations

from gptrs.backends.machine import MACHINE
from gptrs.backends.regions import Region
from gptrs.backends.value_numbering import ValueNumbering
from gptrs.backends.views import Apply, Reduce, walk
from gptrs.ir.dims import same_shape


def kept_value(region: Region, numbers: ValueNumbering) -> Reduce | None:
    """The reduction whose body is kept for the elements of the row; None without one."""
    dtype = region.result.type.dtype
    if region.others or not region.inner or dtype.compute is not dtype or dtype.bits < 32:
        return None
    here = walk(region.expression, into=False)
    elements = {numbers.number(p) for p in here if isinstance(p, Apply) and numbers.varies(p)}
    for part in here:
        if not isinstance(part, Reduce) or not same_shape(part.extents, region.inner):
            continue
        body = part.body
        if isinstance(body, Apply) and body.dtype is dtype and numbers.number(body) in elements:
            inside = walk(body, into=False)
            taken = sum(p.op.cost for p in inside if isinstance(p, Apply) and numbers.varies(p))
            if taken * MACHINE.operation > 4 * MACHINE.contiguous:
                return part
    return None
