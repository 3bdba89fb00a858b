"""IPython and Jupyter: tracebacks that end in the user's cell.

| module | contents |
|---|---|
| `extension` | what gptrs changes in a running IPython |
| `tracebacks` | tracebacks without internal frames |

Nothing here is imported where no IPython runs. Results show themselves (``_repr_html_``, with
`gptrs.html_tables`) and cells have their names (`gptrs.cell_names`) without this package.
"""
