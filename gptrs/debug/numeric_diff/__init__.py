"""Numerical differences of two runs of one program: by element, by instruction, as a table.

`gptrs.jit.numerics` makes the runs (``ptir.compare``, GPTRS_CHECK, ``ptir.debug_nans``), and
`gptrs.parity` compares layers with torch's.

| module | contents |
|---|---|
| `difference` | max abs, max rel, cosine, and a tolerance for results of whole models |
| `element_errors` | max abs, max rel, units in the last place; elements beyond their bounds |
| `deviation` | the first instruction or pass that deviates |
| `instruction_text` | the text of each instruction, with its regions |
| `diff` | ``ptir.compare``: one row for each instruction, as text, HTML and JSON |
| `nan_origin` | the instruction that made a NaN, followed back from a result |
"""
