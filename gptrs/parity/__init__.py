"""Numerical comparison of a model with transformers' model, and diagnosis of differences.

torch and transformers are optional and imported by `torch_models` only.

| module | contents |
|---|---|
| `validate` | ``gptrs validate``: logits at several sizes, with and without a cache |
| `trace` | ``gptrs trace``: every layer's output, and the cause of the first difference |
| `layers` | inputs and outputs of the layers of our model |
| `torch_models` | transformers' model, its logits and layer outputs |
| `tolerance` | accepted differences by task |
| `blame` | cause of a layer's difference: input, weights, definition, pass or backend |
| `inputs` | reproducible random tokens and images |
| `comparing` | progress event |

Order of ``gptrs trace``: `torch_models` and `layers` on the same `inputs` → differences per layer
→ for the first that differs `blame`, which runs the layer alone and calls
`gptrs.jit.numerics.first_deviation`.
"""
