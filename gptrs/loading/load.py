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
from gptrs.errors import warn
from gptrs.formats.labels import read_labels
from gptrs.formats.model_files import ModelFiles, imported, model_class, open_model
from gptrs.formats.overrides import read_overrides
from gptrs.loading.hub import place_of
from gptrs.loading.weights import Weights

if TYPE_CHECKING:
    from gptrs.loading.image_classifier import ImageClassifier
    from gptrs.loading.language_model import LanguageModel

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
) -> LanguageModel: ...
@overload
def load(
    path: str | os.PathLike[str],
    *,
    memory_limit: int | str | None = None,
    context: int | None = None,
    batch: int = 1,
) -> Any: ...


def load(
    path: str | os.PathLike[str] = "stories",
    *,
    memory_limit: int | str | None = None,
    context: int | None = None,
    batch: int = 1,
) -> LanguageModel | ImageClassifier:
    """Open a Hugging Face model directory, a checkpoint (``GPTRSCHK``), a file of torchvision's
    weights (``.safetensors``), a model that ships with gptrs (``"stories"``), or one of
    huggingface.co by its name (``"openai-community/gpt2"``), which ``huggingface_hub`` downloads if
    it is installed.

    The result is a `LanguageModel` or an `ImageClassifier`. Files that a checkpoint does not
    contain (the tokenizer, ``generation_config.json``, ``preprocessor_config.json``) are read from
    beside it. The configuration of torchvision's weights is inferred from their shapes; entries of
    a ``config.json`` have priority. Weights are read on first use. Raises `LoadError` naming the
    file and its defect.

    With a ``memory_limit`` (bytes, or ``"2GB"``) a model is refused if `gptrs.estimate_memory`
    gives more at this ``context`` (None: the context length) and ``batch``; the `ArgumentError`
    lists sizes that would fit.
    """
    for text, category in settings.complaints():
        warn(text, category)
    place = place_of(path)
    with events.working(f"loading {place.name}"):
        model = ready_model(open_model(place))
    if memory_limit is not None:
        from gptrs.memory.fitting import refuse_above  # late: seldom needed

        refuse_above(as_size(memory_limit, "memory_limit"), model.memory(), context, batch)
    return model


def ready_model(files: ModelFiles) -> LanguageModel | ImageClassifier:
    """`model_of`, under the weight streaming options of its configuration. Raises `LoadError`."""
    model = model_of(files)
    if files.runtime.get("weight_streaming") is not None:
        from gptrs.loading.weight_streaming import stream_weights  # late: seldom needed

        stream_weights(model)
    return model


def model_of(files: ModelFiles) -> LanguageModel | ImageClassifier:
    """The handle of the model in ``files``. Raises `LoadError`."""
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
    fields, renames = data, model.renames
    if model.task == "image_classifier":
        from gptrs.formats.torchvision import torchvision_naming  # late: for images only

        if (naming := torchvision_naming(str(kind), files.tensors)) is not None:
            fields, renames = naming.fields(files.tensors.shapes()) | data, naming.renames
        if (labels := read_labels(data, file)) is not None:
            fields = {**fields, "num_labels": len(labels)}
    config = model.read_config(fields, file)
    weights = Weights(files.tensors, renames, model.ignored, model.copies(config))
    built = model.build(config, weights.parameter)
    weights.finish()
    handle = imported(_HANDLES[model.task])
    return handle(files, str(kind), built, weights, overrides)
