"""Passes: rewrites of a traced program, target-independent but for the claims of the backend.

A pass is a function `(Program, Context) -> Program` that returns the program itself when nothing
changes. `pipeline.lower` runs `PIPELINE` in this order:

1. `simplify`, `constant_folding`, `cse`, `dce`, `loop_invariants`, repeated (at most
   `settings.opt_pre_iters`)
2. `transpose_pushdown`: layers with their channels first are computed with channels last
3. `raising`: composites written out in primitives become one instruction
4. `slice_pushdown`: compute only the rows that are read
5. `choose_implementations`: implementations picked by overrides
6. `legalize`: composites that the backend does not claim are decomposed; `input_projections`;
   `round_operands`
7. the first four passes again (at most `settings.opt_post_iters`)
8. the passes of the backend (`Target.passes`; faer: `backends.faer.custom_calls`), then those
9. `hoist`: computations on parameters alone become derived parameters

| module | contents |
|---|---|
| `base` | `Context`, `Target`, stages, and the runner: verifies, times, reports, repeats |
| `pipeline` | `PIPELINE` and `lower` |
| `simplify`, `rules/` | rewrite rules to a fixed point |
| `user_rules`, `rule_samples` | rules that users add; the check of a rule on its samples |
| `constant_folding` | evaluation of instructions on constants |
| `cse` | common subexpression elimination |
| `dce` | dead code elimination |
| `raising`, `raisable`, `idioms/` | idiom recognition: composites found in primitives |
| `slice_pushdown` | slices moved towards the parameters |
| `transpose_pushdown` | transposes moved to where another one undoes them |
| `choose_implementations` | substitution of implementations |
| `legalize` | claim or decompose composites; inlining of definitions |
| `loop_invariants` | what all iterations of a loop share, moved before it |
| `input_projections` | products of a scan's xs with captured weights, of all steps before it |
| `round_operands` | operands of products with weights of bf16 rounded to bf16, if asked for |
| `hoist` | hoisting of parameter-only computations out of the call |

A pass also runs on branches and loop bodies (`Context.in_region`). It never times, prints, verifies
or dumps: the runner does, and emits an event `PassRan` for `gptrs.debug`.
"""
