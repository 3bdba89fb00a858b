"""The passes in their order. A backend adds its own after them."""

from __future__ import annotations

from gptrs.passes.base import Pass
from gptrs.passes.claim import claim_or_inline
from gptrs.passes.dead import eliminate_dead
from gptrs.passes.merge import merge_common_subexpressions
from gptrs.passes.simplify import simplify

PIPELINE: tuple[Pass, ...] = (
    simplify,
    merge_common_subexpressions,
    claim_or_inline,
    simplify,
    merge_common_subexpressions,
    eliminate_dead,
)
