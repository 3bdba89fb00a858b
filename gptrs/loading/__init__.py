"""Loading, conversion and export: ``gptrs.load``, ``from_torch``, ``export``, ``estimate_memory``.

| module | contents |
|---|---|
| `load` | ``gptrs.load``: files → model handle |
| `hub` | names → paths: bundled models, paths, huggingface.co |
| `weights` | parameters of a model, read from files on first use |
| `loaded_model` | `LoadedModel`, the base of handles |
| `language_model` | `LanguageModel`: generate, stream, complete, forward |
| `image_classifier` | `ImageClassifier`: classify, forward |
| `model_parameters` | ``model.parameters()``: a mapping with replacement |
| `weight_streaming` | ``runtime.weight_streaming`` of a configuration |
| `from_torch` | ``gptrs.from_torch``: torch modules and state dicts |
| `convert` | conversion between formats |
| `export` | ``gptrs.export``: models in memory → files |
| `for_gpt_rs` | GPT-2 under the names of gpt.rs |
| `random_model` | directories with random weights, from a configuration |
| `estimate` | ``gptrs.estimate_memory`` |
| `view` | ``model.view``: its program as an HTML page |
| `batches` | input batches from files |
| `threads` | thread limit of a block, for kernels and NumPy |
| `closest_name` | suggestions in errors about unknown names |

Order of ``gptrs.load``: `hub` → `gptrs.formats.model_files.open_model` → `weights` and the model
class → handle (`language_model` or `image_classifier`) → `weight_streaming`, memory limit. Weights
are read when a plan first needs them.
"""
