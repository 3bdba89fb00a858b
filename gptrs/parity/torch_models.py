"""transformers' model of the same configuration and files: logits and layer outputs in f32.

Tensor and layer names are converted to those of this package by the model's rename table. torch and
transformers are imported here only, when a `TorchModel` is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs import tree
from gptrs.errors import ArgumentError, LoadError
from gptrs.extras import needed_for
from gptrs.formats.joined_tensor import JoinedBytes
from gptrs.formats.safetensors_file import SUFFIX
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.ir.parameter import Parameter
from gptrs.lazy_dataclass import dataclass
from gptrs.loading.loaded_model import LoadedModel
from gptrs.memory.abstract_model import abstract_model
from gptrs.models import Model
from gptrs.nn.module import Module

Array = NDArray[Any]
_UNDECLARED = frozenset(["head_dim"])
"""Entries that models of transformers read without their configurations' declaring them."""
_CLASSES = {
    "causal_lm": "AutoModelForCausalLM",
    "image_classifier": "AutoModelForImageClassification",
}


@dataclass(frozen=True)
class TorchCall:
    """A call of a layer: the first tensor of its inputs, and the first of its outputs."""

    taken: Array | None
    given: Array


def _cache_name(module: Any) -> str:
    """The argument for the KV cache, which transformers renamed in 5.24."""
    new, old = "cache", "past_key_values"
    return new if new in signature(module.forward).parameters else old


class TorchModel:
    """transformers' model of the same configuration as ``handle``, computing in f32.

    Its weights are read from the files of ``handle`` again: with safetensors' own reader where
    possible, and under transformers' names where files use these. Raises `ArgumentError` where
    torch is missing or transformers has no such model, `LoadError` for tensors that do not fit.
    """

    def __init__(self, handle: LoadedModel) -> None:
        self._torch, transformers = _libraries()
        self._kind: type[Model] = handle.module.__class__
        if handle.kind not in transformers.CONFIG_MAPPING:
            raise ArgumentError(
                f"transformers has no model {handle.kind!r} to compare with",
                fix="compare a model whose model_type transformers knows",
            )
        config = transformers.AutoConfig.for_model(handle.kind, **_entries(handle))
        _check_structure(handle, config, transformers.AutoConfig.for_model(handle.kind))
        make = getattr(transformers, _CLASSES[self._kind.task])
        options = {"dtype": self._torch.float32}
        if hasattr(config, "_experts_implementation"):  # grouped products need aligned rows
            options["experts_implementation"] = "eager"
        try:
            self.module: Any = make.from_config(config, **options).eval()
        except Exception as error:  # whatever its layers raise of a configuration
            raise ArgumentError(
                f"transformers cannot make a model of this configuration:"
                f" {type(error).__name__}: {error}",
                fix="compare a model whose config.json transformers takes, too",
            ) from error
        self._load(handle)

    @property
    def name(self) -> str:
        """The class name in transformers."""
        return type(self.module).__name__

    def logits(self, inputs: Array) -> Array:
        """Logits of tokens [batch, tokens] or of images [N, H, W, C]."""
        with self._torch.no_grad():
            return self.module(**self._arguments(inputs)).logits.numpy()

    def continued(self, tokens: Array, count: int) -> tuple[list[int], Array]:
        """``count`` greedy tokens after ``tokens`` [1, tokens], decoded with torch's KV cache, and
        the logits [count, vocabulary] of each choice."""
        torch, found, rows = self._torch, list[int](), list[Array]()
        given = torch.as_tensor(tokens)
        _, transformers = _libraries()
        kept = {_cache_name(self.module): transformers.DynamicCache(config=self.module.config)}
        with torch.no_grad():
            for _ in range(count):
                row = self.module(input_ids=given, use_cache=True, **kept).logits[0, -1]
                rows.append(row.numpy())
                found.append(int(row.argmax()))
                given = torch.as_tensor([[found[-1]]])
        return found, np.stack(rows)

    def layers(self, inputs: Array, names: Collection[str]) -> dict[str, list[TorchCall]]:
        """All calls of the layers of these names (those of this package) while the model runs on
        ``inputs``; layers that torch's model does not have are left out."""
        calls: dict[str, list[TorchCall]] = {}
        hooks: list[Any] = []
        try:
            for name, module in self._modules(names).items():
                # Gemma's embeddings are multiplied in their module, here outside of it.
                scale = float(getattr(module, "embed_scale", 1.0))
                hook = self._hook(calls.setdefault(name, []), inputs.shape, scale)
                hooks.append(module.register_forward_hook(hook, with_kwargs=True))
            self.logits(inputs)
        finally:
            for hook in hooks:
                hook.remove()
        return {name: made for name, made in calls.items() if made}

    def _hook(
        self, calls: list[TorchCall], shape: tuple[int, ...], scale: float
    ) -> Callable[..., None]:
        """A forward hook that appends to ``calls``, while the model runs on inputs of ``shape``;
        ``scale`` is what the module multiplies its result by."""

        def first(values: object) -> Array | None:
            array = self._first(values)
            if self._kind.task != "causal_lm" or array is None or array.ndim != 2:
                return array
            # Experts get the tokens of all rows as rows.
            return array.reshape(*shape, -1) if len(array) == shape[0] * shape[1] else array

        def hear(_: Any, args: Any, kwargs: Any, result: Any) -> None:
            taken, given = first((args, kwargs)), first(result)
            if given is not None:
                calls.append(TorchCall(taken, given if scale == 1 else given / scale))

        return hear

    def weights(self, layer: str) -> dict[str, Array]:
        """The parameters of ``layer`` and its sublayers, under the names of this package."""
        found: dict[str, Array] = {}
        for key, tensor in self.module.state_dict().items():
            name = self._own_name(key)
            if name == layer or name.startswith(f"{layer}.") or not layer:
                found.setdefault(name, tensor.numpy())
        return found

    def _own_name(self, key: str) -> str:
        return _renamed(key, self._kind.renames)

    def _modules(self, names: Collection[str]) -> dict[str, Any]:
        """torch's modules under the names of this package. Where renaming gives an outer and an
        inner module one name, it is that of the inner one."""
        found: dict[str, Any] = {}
        for key, module in self.module.named_modules():
            name = self._own_name(f"{key}.").rstrip(".")
            if name and name in names:
                found[name] = module
        return found

    def _arguments(self, inputs: Array) -> dict[str, Any]:
        torch = self._torch
        if self._kind.task == "causal_lm":
            return {"input_ids": torch.as_tensor(inputs), "use_cache": False}
        return {"pixel_values": torch.as_tensor(inputs.transpose(0, 3, 1, 2).copy())}

    def _first(self, values: object) -> Array | None:
        """The first tensor in ``values``; channels last if it is a batch of feature maps."""
        torch = self._torch
        for value in _leaves(values):
            if isinstance(value, torch.Tensor):
                array: Array = value.detach().clone().numpy()  # it may be overwritten later
                maps = array.ndim == 4 and self._kind.task == "image_classifier"
                return array.transpose(0, 2, 3, 1) if maps else array
        return None

    def _load(self, handle: LoadedModel) -> None:
        """Load the tensors of the files into the module. Raises `LoadError`."""
        keys = {stored.key: stored for stored in handle.files.tensors}
        names = {name: handle.weights.stored(name) for name in handle.weights.names.values()}
        prefix = f"{self.module.base_model_prefix}."
        state: dict[str, Any] = self.module.state_dict()
        found: dict[str, Any] = {}
        missing: list[str] = []
        read = _Reader(self._torch)
        for key in state:
            name = self._own_name(key)
            stored = next((keys[k] for k in (key, key.removeprefix(prefix)) if k in keys), None)
            stored = names.get(name) if stored is None else stored
            if stored is not None:
                found[key] = read(stored)
            elif not self._kind.ignored.match(name):
                missing.append(key)
        places = {state[key].data_ptr() for key in found}
        if lost := [key for key in missing if state[key].data_ptr() not in places]:
            raise LoadError(
                f"{handle.files.tensors.place} has no tensor for {lost[0]!r}, which"
                f" {self.name} of transformers needs",
                fix="check that the configuration belongs to these weights",
            )
        self.module.load_state_dict(found, strict=False)


class _Reader:
    """Reads tensors of files, as f32."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._open: Any = import_module("safetensors").safe_open
        self._files: dict[Path, Any] = {}

    def __call__(self, stored: StoredTensor) -> Any:
        path = stored.file.path
        if path.suffix != SUFFIX or not path.is_file() or isinstance(stored.file, JoinedBytes):
            return self._torch.from_numpy(stored.read().astype(np.float32))
        if path not in self._files:
            self._files[path] = self._open(path, framework="pt")
        return self._files[path].get_tensor(stored.key).to(self._torch.float32)


def _libraries() -> tuple[Any, Any]:
    """torch and transformers. Raises `MissingPackageError`."""
    with needed_for("a model of torch to compare with"):
        torch, transformers = import_module("torch"), import_module("transformers")
    transformers.logging.set_verbosity_error()
    return torch, transformers


def _entries(handle: LoadedModel) -> dict[str, Any]:
    """The entries of the configuration, with those inferred from torchvision's weights."""
    from gptrs.formats.torchvision import torchvision_naming  # late: seldom needed

    entries = {name: value for name, value in handle.files.config.items() if name != "model_type"}
    naming = torchvision_naming(handle.kind, handle.files.tensors)
    if naming is not None:
        entries = naming.fields(handle.files.tensors.shapes()) | entries
    return entries


def _check_structure(handle: LoadedModel, config: Any, default: Any) -> None:
    """Raise `ArgumentError` unless transformers' configuration is that of the same model.

    It keeps entries that it does not know; those of the ``default``, and `_UNDECLARED`, it does.
    """
    given, known = (json.loads(each.to_json_string(use_diff=False)) for each in (config, default))
    entries = {name: value for name, value in given.items() if name in _UNDECLARED or name in known}
    entries["model_type"] = handle.kind
    theirs = _parts(abstract_model(entries, handle.files.config_file))
    ours = _parts(handle.module)
    for place in [*ours, *theirs]:
        if ours.get(place) != theirs.get(place):
            raise ArgumentError(
                f"{type(config).__name__} of transformers has no such model: {place} is"
                f" {ours.get(place)}, there it would be {theirs.get(place)}",
                fix="compare a model that transformers can build",
            )


def _parts(module: Module) -> dict[str, str]:
    """The parameter shapes and the numbers of a model by path, as text."""
    leaves, structure = tree.flatten(module)
    return {
        place.lstrip("."): f"{leaf.name} {leaf.type.shape}"
        if isinstance(leaf, Parameter)
        else repr(leaf)
        for place, leaf in zip(tree.paths(structure), leaves, strict=True)
        if not place.startswith(".config.")
    }


def _renamed(key: str, renames: Iterable[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in renames:
        key = pattern.sub(replacement, key)
    return key


def _leaves(value: Any) -> Iterable[Any]:
    """The leaves of tuples, lists and mappings (transformers' outputs are), in order."""
    if isinstance(value, Mapping):
        value = tuple(value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, tuple | list):
        for part in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(part)
    else:
        yield value
