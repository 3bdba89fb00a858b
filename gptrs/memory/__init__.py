"""Memory estimates: the memory that a model takes, known before its weights are read.

| module | contents |
|---|---|
| `abstract_model` | a model with parameter types and without elements, from its configuration |
| `estimate` | `ModelMemory`: trace and plan at given sizes → `MemoryEstimate` |
| `fitting` | the largest context or batch within a limit |

Order: `abstract_model` → `estimate` (traces and plans, runs nothing) → `fitting`, against a given
limit or that of `gptrs.backends.host`. Public entry points: ``gptrs.estimate_memory``
(`gptrs.loading.estimate`), ``gptrs.load(memory_limit=...)``, ``gptrs fit``.
"""
