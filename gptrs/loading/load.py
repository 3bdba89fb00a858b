"""``gptrs.load``: path or name → a model handle that reads its weights on first use.

Resolves the name (`gptrs.loading.hub`), opens the files (`gptrs.formats.model_files`), makes the
configuration dataclass, builds the model with lazy parameters (`gptrs.loading.weights`), and wraps
it in a `LanguageModel` or an `ImageClassifier`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, overload

from gptrs import events, settings
from gptrs.byte_sizes import as_size
from gptrs.errors import ArgumentError, warn
from gptrs.formats.labels import read_labels
from gptrs.formats.model_files import ModelFiles, imported, model_class, open_model
from gptrs.formats.overrides import read_overrides
from gptrs.loading.hub import place_of
from gptrs.loading.weights import Weights

if TYPE_CHECKING:
    from gptrs.loading.image_classifier import ImageClassifier
    from gptrs.loading.language_model import LanguageModel

_EXPORTED = {  # by suffix: files that hold a program, and what loads them, imported on use
    ".onnx": "gptrs.onnx:load_onnx",
    ".pt2": "gptrs.torch.archive:load_archive",
}
_HANDLES = {  # by task, imported on use
    "causal_lm": "gptrs.loading.language_model:LanguageModel",
    "image_classifier": "gptrs.loading.image_classifier:ImageClassifier",
}


@overload
def load(
    path: Literal["stories"] = "stories",
    *,
    memory_limit: int | str | None = None,
    context: int | None = None,
    batch: int = 1,
    kv_cache_dtype: object = None,
    backend: str | None = None,
) -> LanguageModel: ...
@overload
def load(
    path: str | os.PathLike[str],
    *,
    memory_limit: int | str | None = None,
    context: int | None = None,
    batch: int = 1,
    kv_cache_dtype: object = None,
    backend: str | None = None,
) -> Any: ...


def load(
    path: str | os.PathLike[str] = "stories",
    *,
    memory_limit: int | str | None = None,
    context: int | None = None,
    batch: int = 1,
    kv_cache_dtype: object = None,
    backend: str | None = None,
) -> LanguageModel | ImageClassifier:
    """Open a Hugging Face model directory, a checkpoint (``GPTRSCHK``), a file of torchvision's
    weights (``.safetensors``), a model that ships with gptrs (``"stories"``), or one of
    huggingface.co by its name (``"openai-community/gpt2"``), which ``huggingface_hub`` downloads if
    it is installed.

    A file that ``torch.export.save`` wrote (``.pt2``) gives a function of arrays, a
    `gptrs.torch.exported.ExportedModel`; a file of ONNX (``.onnx``) a `gptrs.onnx.OnnxModel`. Both
    are loaded without options.

    The result is a `LanguageModel` or an `ImageClassifier`. Files that a checkpoint does not
    contain (the tokenizer, ``generation_config.json``, ``preprocessor_config.json``) are read from
    beside it. The configuration of torchvision's weights is inferred from their shapes; entries of
    a ``config.json`` have priority. Weights are read on first use. Raises `LoadError` naming the
    file and its defect.

    With a ``memory_limit`` (bytes, or ``"2GB"``) a model is refused if `gptrs.estimate_memory`
    gives more at this ``context`` (None: the context length) and ``batch``; the `ArgumentError`
    lists sizes that would fit.

    ``kv_cache_dtype`` ("bf16" or "f16") stores keys and values of earlier tokens in 16 bits: a
    cache of half the size, which long texts are read from in half the time. They are rounded once,
    and attention adds up in f32. `ArgumentError` for models of images.

    ``backend`` is the one that the handle runs the model on; ``"auto"`` is the first that is
    available and has the memory that the model takes at this ``context`` and ``batch``
    (`gptrs.init_backend`). `ArgumentError` where none has it. Without it that of each call is used.
    """
    for text, category in settings.complaints():
        warn(text, category)
    place = place_of(path)
    if (loader := _EXPORTED.get(place.suffix)) is not None:
        options = (memory_limit, context, kv_cache_dtype, backend)
        if any(option is not None for option in options) or batch != 1:
            raise ArgumentError(
                f"{place} is a program, which is loaded without options", fix="give the path alone"
            )
        return imported(loader)(place)
    with events.working(f"loading {place.name}"):
        model = ready_model(open_model(place), kv_cache_dtype)
    if memory_limit is not None:
        from gptrs.memory.fitting import refuse_above  # late: seldom needed

        refuse_above(as_size(memory_limit, "memory_limit"), model.memory(), context, batch)
    if backend is not None:
        from gptrs.backends.selection import fitting_backend  # late: seldom needed

        required = model.memory().at(context=context, batch=batch).total
        model.set_backend(fitting_backend(backend, required))
    return model


def ready_model(
    files: ModelFiles, kv_cache_dtype: object = None
) -> LanguageModel | ImageClassifier:
    """`model_of`, under the weight streaming options of its configuration. Raises `LoadError`."""
    model = model_of(files, kv_cache_dtype)
    if files.runtime.get("weight_streaming") is not None:
        from gptrs.loading.weight_streaming import stream_weights  # late: seldom needed

        stream_weights(model)
    return model


def model_of(files: ModelFiles, kv_cache_dtype: object = None) -> LanguageModel | ImageClassifier:
    """The handle of the model in ``files``. Raises `LoadError` and `ArgumentError`."""
    file, data = files.config_file, files.config
    overrides = read_overrides(files.runtime, file)
    if (quantisation := data.get("quantization_config")) is not None:
        from gptrs.formats.unsupported import quantised  # for errors alone

        raise quantised(quantisation, file)
    kind = files.kind
    if not files.kind_field:
        from gptrs.formats.torchvision import torchvision_kind  # late: for images only

        kind = torchvision_kind(files.tensors)
    model = model_class(kind, file, files.kind_field)
    if kv_cache_dtype is not None and model.task != "causal_lm":
        raise ArgumentError(
            f"kv_cache_dtype is {kv_cache_dtype!r}, and the model takes images", fix="leave it out"
        )
    fields, renames = data, model.renames
    if model.task == "image_classifier":
        from gptrs.formats.torchvision import torchvision_naming  # late: for images only

        if (naming := torchvision_naming(str(kind), files.tensors)) is not None:
            fields, renames = naming.fields(files.tensors.shapes()) | data, naming.renames
        if (labels := read_labels(data, file)) is not None:
            fields = {**fields, "num_labels": len(labels)}
    config = model.read_config(fields, file)
    weights = Weights(
        files.tensors, renames, model.ignored, model.copies(config), model.stacks(config)
    )
    built = model.build(config, weights.parameter)
    weights.finish()
    handle = imported(_HANDLES[model.task])
    options = {} if kv_cache_dtype is None else {"kv_cache_dtype": kv_cache_dtype}
    return handle(files, str(kind), built, weights, overrides, **options)
