"""``gptrs.from_torch``: a torch module or state dict in memory as a loaded model.

torch itself is not imported: modules exist only if the caller imported it. Tensors of models that
are known are copied and become in-memory `StoredTensor` entries, so that the rest is the path of
`gptrs.load`; other modules are exported (`gptrs.torch.exported`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from gptrs.errors import ArgumentError, LoadError, PtirError
from gptrs.formats.in_memory import in_memory_tensor
from gptrs.formats.model_files import ModelFiles, read_config, without_runtime
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.formats.tensor_files import ModelTensors
from gptrs.formats.torchvision import torchvision_kind
from gptrs.ir.tensor import as_array
from gptrs.ir.types import Array
from gptrs.loading.load import ready_model
from gptrs.locks import late_import
from gptrs.models import known_models

Place: TypeAlias = str | os.PathLike[str]
_Memory: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...], str]


def from_torch(
    module: object,
    example_inputs: Sequence[Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    config: object = None,
    directory: Place | None = None,
    kv_cache_dtype: object = None,
) -> Any:
    """A model from a ``torch.nn.Module``, without files: a `LanguageModel` or an `ImageClassifier`,
    as `gptrs.load` returns them; with ``example_inputs`` any module, as a function of arrays.

    With ``example_inputs``, a tuple of the arguments of a call, ``torch.export`` takes the module
    down, and the result is a `gptrs.torch.exported.ExportedModel`: its parameters are read in
    place. ``dynamic_shapes`` names the sizes that may differ from call to call, as in
    ``torch.export.export``. An ``ExportedProgram`` is taken as it is. Otherwise:

    ``module`` is one of transformers (``GPT2LMHeadModel``, ``GPT2Model``,
    ``ResNetForImageClassification``, ``MobileNetV2ForImageClassification``), which has its
    ``config``, or a ResNet or MobileNetV2 with torchvision's tensor names, from which the
    configuration is inferred. A state dict (names and tensors, of torch or NumPy) is accepted, too,
    with ``config``: the entries of a ``config.json``, its path, or a configuration of transformers.
    The tokenizer, ``generation_config.json`` and ``preprocessor_config.json`` are read from
    ``directory``. ``kv_cache_dtype`` is that of `gptrs.load`.

    Tensors are copied: later changes of the module have no effect. Tensors that share memory, such
    as a tied head, become one parameter. The module's training mode is ignored: the model infers.
    Raises `ArgumentError` for other modules and for tensors that are not on the CPU, sparse or
    quantized, `LoadError` where the configuration or the tensors do not fit.
    """
    torch_export: Any = sys.modules.get("torch.export")
    if torch_export is not None and isinstance(module, torch_export.ExportedProgram):
        return _exported().ExportedModel(module)
    if example_inputs is not None:
        return _exported().exported(_plain_module(module), example_inputs, dynamic_shapes)
    return ready_model(torch_files(module, config, directory), kv_cache_dtype)


def _exported() -> Any:
    return late_import("gptrs.torch.exported")  # it imports torch


def torch_files(module: object, config: object, directory: Place | None) -> ModelFiles:
    """``module``, or a state dict, as opened model files. Raises as `from_torch`."""
    own, place = None, Path("<state dict>")
    if isinstance(module, Mapping):
        state = cast("Mapping[object, object]", module)
    else:
        plain = _plain_module(module)
        place = Path(f"<{type(plain).__name__}>")
        state, own = plain.state_dict(), _own_config(plain)
    if own is not None and config is not None:
        raise ArgumentError(
            f"{place} has a configuration, and config= gives another", fix="leave out config="
        )
    file, entries, runtime = _settings(own if config is None else config, place)
    tensors = ModelTensors(
        place,
        _copies(state, place),
        "its configuration",
        "check that the configuration belongs to these tensors",
    )
    folder = place if directory is None else Path(directory)
    if directory is not None and not folder.is_dir():
        raise LoadError(f"{folder} is no directory", fix="give the one that has the tokenizer")
    field = "model_type" if entries else ""
    kind = entries.get("model_type")
    files = ModelFiles(place, folder, file, kind, field, entries, runtime, tensors)
    if not field:
        _check_torchvision(files)
    return files


def _plain_module(module: object) -> Any:
    """``module`` without the wrapper of ``torch.compile``. Raises `ArgumentError`."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(module, torch.nn.Module):
        raise ArgumentError(
            f"found a {type(module).__name__}, expected a torch.nn.Module or a state dict",
            fix="give files to gptrs.load" if isinstance(module, str | os.PathLike) else "",
        )
    return getattr(module, "_orig_mod", module)


def _own_config(module: Any) -> dict[str, Any] | None:
    """The ``config.json`` of a model of transformers; None for other modules."""
    config = getattr(module, "config", None)
    if getattr(config, "model_type", None) is None or not hasattr(config, "to_json_string"):
        return None
    entries = _entries(config)
    entries["architectures"] = [type(module).__name__]
    if (dtype := getattr(module, "dtype", None)) is not None:
        entries["dtype"] = str(dtype).removeprefix("torch.")  # the dtype of the tensors
    generation = getattr(module, "generation_config", None)
    if (ends := getattr(generation, "eos_token_id", None)) is not None:
        entries["eos_token_id"] = ends
    return entries


def _entries(config: Any) -> dict[str, Any]:
    """A configuration of transformers as JSON."""
    return json.loads(config.to_json_string(use_diff=False))


def _settings(config: object, place: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """The source of the configuration, its entries, and the run options."""
    if config is None:
        return place, {}, {}
    if isinstance(config, str | os.PathLike):
        file = Path(cast("Place", config))
        return file, *read_config(file)
    given: Any = config
    if not isinstance(config, Mapping):
        if not hasattr(config, "to_json_string"):
            raise ArgumentError(
                f"config is a {type(config).__name__}, expected the entries of a config.json",
                fix="give a dict, the path of a config.json, or a configuration of transformers",
            )
        given = _entries(config)
    return place, *without_runtime(given, place)


def _check_torchvision(files: ModelFiles) -> None:
    try:
        torchvision_kind(files.tensors)
    except LoadError:
        raise ArgumentError(
            f"{files.place} has no configuration, and its tensors are not named as in"
            " torchvision's resnet or mobilenet_v2",
            fix=f"give config=, whose model_type is one of {', '.join(known_models())}",
        ) from None


def _copies(state: Mapping[Any, object], place: Path) -> list[StoredTensor]:
    """Copies of all tensors; tensors that share memory share a copy."""
    made: dict[_Memory, Array] = {}
    tensors: list[StoredTensor] = []
    for key, value in state.items():
        if not isinstance(key, str):
            raise ArgumentError(f"{place}: a tensor is called {key!r}, expected a string")
        array = _array(place, key, value)
        memory = (array.ctypes.data, array.shape, array.strides, array.dtype.name)
        if memory not in made:
            made[memory] = np.array(array, order="C")
        tensors.append(in_memory_tensor(place, key, made[memory]))
    return tensors


def _array(place: Path, key: str, value: Any) -> Array:
    """``value`` as an array, without a copy where possible. Raises `ArgumentError`."""
    wrong, fix = _why_not(value)
    array = None
    if not wrong:
        try:
            array = as_array(value)
        except PtirError as error:
            wrong, fix = error.problem, error.fix
        except (RuntimeError, TypeError, ValueError) as error:  # of subclasses of torch's tensors
            wrong, fix = f"a {type(value).__name__} that is no array: {error}", ""
    if array is None:
        raise ArgumentError(
            f"{place}: {key!r} is {wrong or f'a {type(value).__name__}, expected a tensor'}",
            fix=fix or "give the state dict of a model of plain tensors: module.state_dict()",
        )
    return array


def _why_not(value: Any) -> tuple[str, str]:
    """The reason why a torch tensor cannot become an array, and the remedy; empty if it can."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return "", ""
    if value.device.type == "meta":
        return "on the meta device, without elements", "load the weights into the module first"
    if value.device.type != "cpu":
        return f"on {value.device}, expected the CPU", "move it there: module.cpu()"
    if value.is_quantized:
        return f"quantized ({value.dtype}), expected floats", "give the module before quantization"
    if value.layout is not torch.strided:
        return f"sparse ({value.layout}), expected a dense tensor", "make it dense: to_dense()"
    return "", ""
