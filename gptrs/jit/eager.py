"""A jitted function run op by op, without a program: ``GPTRS_EAGER=1`` and `ptir.eager`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gptrs import tree
from gptrs.ir.dispatch import interpreter
from gptrs.ir.promotion import strictness
from gptrs.ir.tensor import Tensor, as_array
from gptrs.jit.arguments import Arguments
from gptrs.jit.chooser import eager_interpreter
from gptrs.jit.options import Options
from gptrs.jit.overrides import in_effect


def run_eagerly(function: Callable[..., Any], arguments: Arguments, options: Options) -> Any:
    """What ``function`` returns for ``arguments``, with the precision and the overrides that a
    trace under ``options`` has. Donated arguments are left as they are."""
    tensors = [
        Tensor.of_array(leaf.tensor.numpy(), weak=leaf.tensor.weak) for leaf in arguments.inputs
    ]
    chosen = eager_interpreter(in_effect(options.overrides))
    with interpreter(chosen), strictness(options.strict_dtypes):
        result = arguments.call(function, tensors)
    leaves, structure = tree.flatten(
        result, is_leaf=lambda x: isinstance(x, Tensor), label="the result"
    )
    return tree.unflatten(structure, [_detached(leaf) for leaf in leaves])


def _detached(leaf: Any) -> Any:
    """A result as a Tensor whose memory is its own."""
    if (array := as_array(leaf)) is None:
        return leaf
    weak = isinstance(leaf, Tensor) and leaf.weak
    return Tensor.of_array(np.array(array, order="C"), weak=weak)
