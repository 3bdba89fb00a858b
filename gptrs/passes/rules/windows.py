"""extract_patches with a window of one element."""

from __future__ import annotations

from gptrs.ir.ops.window import Counts, Padding, extract_patches
from gptrs.ir.rewrite import rewrite
from gptrs.ir.tensor import Tensor
from gptrs.passes.rules.slices import cut

_ONE = {"n": (1, 1), "s": (1, 1), "d": (1, 1), "p": ((0, 0), (0, 0))}


@rewrite(
    lambda x, n, s, d, p, v: extract_patches(
        x, window=n, strides=s, dilation=d, padding=p, value=v
    ),
    samples=[
        {"x": "T[2,m,4,n]", **_ONE, "v": 0},
        {"x": "T[m,5,6,n]", **_ONE, "s": (2, 3), "d": (1, 2), "v": 1},
        {"x": "T[m,n,3]", "n": (1,), "s": (1,), "d": (1,), "p": ((0, 0),), "v": 0},
    ],
)
def patch_of_one(x: Tensor, n: Counts, s: Counts, p: Padding) -> Tensor | None:
    """Patches of one element are a strided slice along the spatial axes of x."""
    if any(size != 1 for size in n) or any(pair != (0, 0) for pair in p):
        return None
    sizes = [(extent - 1) // step + 1 for extent, step in zip(x.shape[1:-1], s, strict=True)]
    return cut(x, (0,) * x.ndim, (x.shape[0], *sizes, x.shape[-1]), (1, *s, 1))
