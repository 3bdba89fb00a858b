"""Models with random weights from a configuration, for tests and benchmarks without downloads.

Written as a Hugging Face directory. Weights are scaled per layer so that activations stay of order
1; a seed gives the same bytes every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gptrs.errors import ArgumentError
from gptrs.formats.hf_directory import write_directory
from gptrs.formats.json_files import read_json
from gptrs.formats.tensor_writer import NewTensor
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array, DType, bf16, f16, f32
from gptrs.memory.abstract_model import abstract_model
from gptrs.models.experts import Experts
from gptrs.nn.layers import Conv1D, ConvLayer, Embedding
from gptrs.nn.module import Module
from gptrs.params import base_param_id

_DTYPES = {"float16": f16, "bfloat16": bf16}
_SHARD_SIZE = 5 * 10**9  # bytes
_PIECE = 2**22  # elements at a time

# Gains: output deviation over input deviation. So large that the likeliest tokens depend on all the
# text, and that some values reach the 6 of relu6. relu drops half of a convolution's output; one
# without an activation ends a residual branch: its gain is below 1, so that sums do not grow.
_LINEAR, _TOKENS, _CONVOLUTION = 1.5, 2.5, math.sqrt(2)
_CONVOLUTIONS = {None: 0.5, "relu6": 2.0}  # by their activations


def write_random_model(config_file: Path, directory: Path, *, seed: int = 0) -> None:
    """Write a Hugging Face directory with the entries of ``config_file``, a ``config.json``, and
    random weights in the dtype that it says, else f32.

    The tensors are named as transformers names them. A seed (from 0 up) gives the same bytes
    every time; weights are so large that activations stay of order 1. Raises `LoadError` for a
    configuration that no model has, `ArgumentError` where the directory holds something already or
    cannot be written.
    """
    if seed < 0:
        raise ArgumentError(f"seed is {seed}, expected an integer from 0 up")
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ArgumentError(f"{directory} is there already", fix="give a new or empty directory")
    config = read_json(config_file)
    model = abstract_model(config, config_file)
    ranges = _ranges(model)
    entry = config.get("dtype", config.get("torch_dtype"))
    dtype = _DTYPES.get(entry, f32) if isinstance(entry, str) else f32
    tensors = [
        NewTensor(
            model.stored_name(name), shape, dtype, partial(_drawn, name, shape, dtype, within, seed)
        )
        for name, (shape, within) in sorted(ranges.items())
    ]
    write_directory(directory, config, tensors, _SHARD_SIZE, {})


class _Range(NamedTuple):
    """The uniform distribution of a weight's elements: ``middle`` ± ``reach``."""

    middle: float
    reach: float


def _ranges(model: Module) -> dict[str, tuple[tuple[int, ...], _Range]]:
    """The shape and the distribution of each parameter, by name."""
    found: dict[str, tuple[tuple[int, ...], _Range]] = {}
    gains: dict[int, float] = {}  # of convolutions, by id
    for module in model.modules().values():  # parents first
        if isinstance(module, ConvLayer):
            gain = _CONVOLUTIONS.get(module.activation, _CONVOLUTION)
            gains[id(module.convolution)] = gain
        for field, value in vars(module).items():
            if isinstance(value, Parameter):
                shape = tuple(int(extent) for extent in value.shape)
                within = _range(module, field, shape, gains.get(id(module), _LINEAR))
                found.setdefault(value.name, (shape, within))
    return found


def _range(module: Module, field: str, shape: tuple[int, ...], gain: float) -> _Range:
    """The distribution of a ``module``'s parameter; ``gain`` applies to matrix products."""
    if field.endswith(("bias", "running_mean")):
        return _Range(0.0, 0.3)
    if field.endswith("running_var"):
        return _Range(1.0, 0.5)
    if len(shape) < 2:  # of a normalisation
        return _Range(1.0, 0.4)
    if isinstance(module, Embedding):
        gain = _TOKENS
    if isinstance(module, Experts):
        terms = shape[-1]
    else:
        terms = shape[0] if isinstance(module, Conv1D) else math.prod(shape[1:])
    return _Range(0.0, gain * math.sqrt(3 / terms))  # the deviation is reach / √3


def _drawn(
    name: str, shape: tuple[int, ...], dtype: DType, within: _Range, seed: int
) -> Iterator[Array]:
    """The elements of the parameter ``name``, independent of the other parameters."""
    random = np.random.default_rng([seed, base_param_id(name)])
    count = math.prod(shape)
    low, width = np.float32(within.middle - within.reach), np.float32(2 * within.reach)
    for first in range(0, count, _PIECE):
        drawn = random.random(min(_PIECE, count - first), np.float32)
        yield (low + width * drawn).astype(dtype.numpy)
