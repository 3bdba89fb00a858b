"""Error bounds: how far a backend's result of an op may be from its NumPy meaning, by element.

The bounds are the worst cases of the table in ``docs/numerics.md``, op by op, propagated with the
values (ball arithmetic). `gptrs.debug.numeric_diff` and GPTRS_CHECK judge single instructions by
them, the differential tests whole programs.

| module | contents |
|---|---|
| `balls` | a value with its error radius, rounding, margins |
| `radii` | radius of each op's result from those of its operands; units in the last place by op |
| `sums` | radii of sums, products and sorting |
| `error_propagation` | `BallEvaluator`: a program evaluated with a radius for each value |
| `own_error` | bound of the error that one instruction makes by itself |
"""
