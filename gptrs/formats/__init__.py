"""Model file formats: readers and writers of configurations, tensors and what belongs to them.

Files are untrusted. Readers check an index completely before memory is taken for a tensor, bound
the memory in proportion to the size of the file, and raise `LoadError` with file, field, value
found and value expected. Nothing is unpickled. Writers replace a file atomically.

| module | contents |
|---|---|
| `model_files` | `open_model`: configuration and tensors of a directory or file |
| `kinds` | `Format` and `Names`: the formats to write |
| `tensor_files` | the tensors of a model, in one file or several |
| `stored_tensor` | `StoredTensor`: one tensor of a file, read on demand |
| `byte_file` | random access to an open file, without mmap |
| `in_memory` | arrays of this process as stored tensors |
| `safetensors_file`, `safetensors_writer` | safetensors |
| `checkpoint` | GPTRSCHK: configuration and tensors in one file |
| `archive` | GPTRSTEN: named tensors in one file |
| `compiled_file`, `call_form_json` | compiled functions: program, captured parameters, kernels |
| `tensor_index` | the index that GPTRSCHK and GPTRSTEN share |
| `binary_fields` | fields of binary headers, with named errors |
| `hf_directory` | writer of Hugging Face directories |
| `sidecar_files` | tokenizer and other files beside a model |
| `tensor_writer`, `write_events` | tensors to be written, in pieces; progress events |
| `atomic_write` | files written completely or not at all |
| `json_text`, `json_files` | JSON with unique names and bounded memory; configurations |
| `chat_files`, `generation_config` | chat templates, special tokens; the makers' options |
| `labels`, `overrides`, `preprocessor` | id2label, functional_overrides, preprocessor_config.json |
| `gpt_rs`, `gpt_rs_images` | checkpoints that gpt.rs wrote, under Hugging Face's names |
| `torchvision` | detection of torchvision's state dicts |
| `array_files` | .npy, .npz and archives as input and output of commands |
| `unsupported` | errors for pickles, GGUF and quantised weights |

Reading: `model_files.open_model` → `json_files`, and `tensor_files` or `checkpoint` →
`StoredTensor` entries; elements are read later, by `gptrs.loading.weights`. Writing:
`gptrs.loading.convert` → `tensor_writer` → `hf_directory`, `checkpoint`, `safetensors_writer` or
`archive` → `atomic_write`.
"""
