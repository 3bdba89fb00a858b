"""``fn.view``: one lowering as a self-contained HTML page.

`gptrs.jit.view` records a lowering (`gptrs.debug.lowering.Lowering`), `document` turns the record
into plain data, `page` puts the data and the page's script into one file.

| module | contents |
|---|---|
| `view` | `View`: what ``fn.view`` returns; shown in notebooks, saved as a file |
| `document` | the record as JSON: stages, error, plan |
| `tables` | instructions, values and source files of all stages, each once |
| `plan` | steps, arena and kernels of a plan as JSON |
| `exports` | the record for other viewers: Model Explorer, Graphviz |
| `page` | the HTML page |
| `assets/` | the built script and style, and licences of the libraries in them |
| `web/` | their sources; ``npm ci && npm run build`` writes `assets` |
"""
