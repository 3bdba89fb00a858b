"""IPython and Jupyter: tracebacks that end in the user's cell, magics.

| module | contents |
|---|---|
| `extension` | what gptrs changes in a running IPython; ``%load_ext gptrs`` |
| `magics` | ``%%ptir``, ``%gptrs_profile``, ``%gptrs_view`` |
| `cells` | the code below a magic, run as a cell without one is |
| `compiled` | what was compiled in a block, as a table |
| `tracebacks` | tracebacks without internal frames |

Nothing here is imported where no IPython runs. Results show themselves (``_repr_html_``, with
`gptrs.html_tables`) and cells have their names (`gptrs.cell_names`) without this package.
"""
