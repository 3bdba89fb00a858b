"""The pass pipeline: the order of the passes from a traced program to the input of a backend's
plan.

Called by `gptrs.jit.lower`. The order is described in `gptrs.passes`.
"""

from __future__ import annotations

from gptrs import settings
from gptrs.ir.program import Program
from gptrs.passes.base import BACKEND, Context, Pass, Repeat, Stage, run_passes
from gptrs.passes.choose_implementations import choose_implementations
from gptrs.passes.constant_folding import fold_constants
from gptrs.passes.cse import eliminate_common_subexpressions
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.hoist import hoist_parameters
from gptrs.passes.input_projections import batch_input_projections
from gptrs.passes.legalize import legalize
from gptrs.passes.loop_invariants import hoist_invariants
from gptrs.passes.raising import raise_composites
from gptrs.passes.round_operands import round_operands
from gptrs.passes.simplify import simplify
from gptrs.passes.slice_pushdown import push_slices
from gptrs.passes.transpose_pushdown import push_transposes

_CLEAN: tuple[Pass, ...] = (
    simplify,
    fold_constants,
    eliminate_common_subexpressions,
    eliminate_dead_code,
)

PIPELINE: tuple[Stage, ...] = (
    Repeat((*_CLEAN, hoist_invariants), settings.opt_pre_iters),
    push_transposes,
    raise_composites,
    push_slices,
    choose_implementations,
    legalize,
    batch_input_projections,
    round_operands,
    Repeat(_CLEAN, settings.opt_post_iters),
    BACKEND,
    Repeat(_CLEAN, settings.opt_post_iters),
    hoist_parameters,
)


def lower(program: Program, context: Context, *, check: bool = True) -> Program:
    """``program`` as the plan of the target receives it. Raises `VerifyError` as `run_passes`."""
    return run_passes(program, PIPELINE, context, check=check)
