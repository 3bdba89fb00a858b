"""IPython and Jupyter: tracebacks that end in the user's cell, magics, progress of long work.

| module | contents |
|---|---|
| `extension` | what gptrs changes in a running IPython; ``%load_ext gptrs`` |
| `magics` | ``%%ptir``, ``%gptrs_profile``, ``%gptrs_view`` |
| `cells` | the code below a magic, run as a cell without one is |
| `compiled` | what was compiled in a block, as a table |
| `progress` | ``gptrs.progress``: when long work is shown, and what of it |
| `display` | a line of progress in a notebook, and on a terminal |
| `tracebacks` | tracebacks without internal frames |

Where no IPython runs, `progress` alone is used, if it is asked for. Results show themselves
(``_repr_html_``, with `gptrs.html_tables`) and cells have their names (`gptrs.cell_names`) without
this package.
"""
