"""Image decoding and preprocessing for classifiers.

Follows the image processors of Hugging Face transformers. Pillow is imported on first use.

| module | contents |
|---|---|
| `decode` | file, Pillow image or array → pixels |
| `preprocessor_config` | ``preprocessor_config.json`` → `PreprocessorConfig` |
| `preprocess` | `Preprocessor`: resize, crop, rescale, normalise |

Order of one image: `decode` → resize → crops → rescale → normalise (`preprocess`), with the
parameters of `preprocessor_config`; `gptrs.formats.preprocessor` finds the file.
"""
