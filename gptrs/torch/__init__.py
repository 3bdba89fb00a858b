"""torch's modules as programs: ``torch.compile(model, backend="gptrs")``.

    import torch
    model = torch.compile(model, backend="gptrs")
    model(x)
    print(gptrs.torch.explain(model, x))

The backend is registered by an entry point: nothing has to be imported for it.

| file | what it has |
|---|---|
| `dynamo` | the backend of ``torch.compile`` |
| `options` | what ``options=`` takes |
| `composites` | composite operators, which stay whole in inference |
| `compiled` | a graph with its operands: tensors in, tensors out |
| `exported` | modules of ``torch.export`` (``gptrs.from_torch``) |
| `archive` | ``.pt2`` files (``gptrs.load``) |
| `explain` | the plans of a compiled module's graphs |
| `graph` | a graph as a function that ``ptir.jit`` traces |
| `operators` | one operator: by the table, or by torch itself |
| `aten/` | the table: what each of ATen's operators means |
| `tensors` | torch's tensors, types and sizes in PTIR |
"""

from gptrs.extras import needed_for

with needed_for("gptrs.torch"):
    from gptrs.torch.explain import explain

__all__ = ["explain"]
