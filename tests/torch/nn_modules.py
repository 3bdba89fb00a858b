"""The modules of ``torch.nn`` with torch's own inputs, compiled and held against eager torch.

    python -m tests.torch.nn_modules                  # all of them, forward and backward
    python -m tests.torch.nn_modules LSTM Conv2d

Each has the inputs of ``module_db``, in training and in evaluation. Prints a line for each module
that is wrong or that torch runs in parts, and the counts. Compiled by torch with any backend,
MultiLabelMarginLoss of one row without a reduction has the shape [1], eager []: it counts as wrong.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.testing import assert_close
from torch.testing._internal import common_modules
from torch.utils import _pytree as pytree

from gptrs.torch.compiled import noted_calls
from gptrs.torch.dynamo import gptrs
from gptrs.torch.operators import Fallback
from tests.torch.opinfo import Report, tell

MODULES: list[Any] = common_modules.module_db


class RefusedError(Exception):
    """Eager torch does not take the input."""


def name_of(module: Any) -> str:
    """The name of its class."""
    return module.module_cls.__name__


def check(module: Any) -> Report:
    """Hold ``module`` with all its inputs against eager torch, in training and in evaluation."""
    ran: dict[Fallback, None] = {}
    count = 0
    modes = (True, False) if module.train_and_eval_differ else (True,)
    for training in modes:
        torch.manual_seed(0)
        inputs = module.module_inputs_func(
            module, device="cpu", dtype=torch.float32, requires_grad=True, training=training
        )
        for given in inputs:
            if given.forward_input is None:
                continue
            try:
                ran.update(dict.fromkeys(check_input(module, given, training)))
            except RefusedError:
                continue
            except Exception as error:  # of any kind, and of torch's: reported
                which = f"input {count + 1} ({given.desc or ''}): "
                said = " ".join(line for line in str(error).splitlines() if line.strip())
                said = f"{which}{type(error).__name__} {said[:300]}"
                return Report(name_of(module), count, said, tuple(ran))
            count += 1
    return Report(name_of(module), count, "", tuple(ran))


def check_input(module: Any, given: Any, training: bool) -> list[Fallback]:
    """Hold one input's results and gradients against eager torch, and say what torch ran. Raises
    `AssertionError`, and `RefusedError` where eager torch has none."""
    made = module.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs)
    made.train(training)
    forward = given.forward_input
    if module.is_lazy:
        with torch.no_grad():
            made(*forward.args, **forward.kwargs)
    torch._dynamo.reset()
    other = copy.deepcopy(made)
    compiled: Any = torch.compile(other, backend=gptrs)
    try:
        wanted = _results(made, forward)
    except RuntimeError as error:
        raise RefusedError from error
    # Otherwise torch leaves recurrent modules out of its graphs.
    with torch._dynamo.config.patch(allow_rnn=True), noted_calls() as calls:
        found = _results(compiled, forward)
    for each, expected in zip(found, wanted, strict=True):
        # Sums of other orders: what is small beside the greatest element has its errors.
        size = float(expected.abs().nan_to_num(posinf=0).max()) if expected.numel() else 0.0
        assert_close(each, expected, rtol=2e-5, atol=2e-5 * max(size, 1.0), equal_nan=True)
    for (name, each), (_, expected) in zip(
        other.named_buffers(), made.named_buffers(), strict=True
    ):
        assert_close(each, expected, rtol=2e-5, atol=1e-5, msg=f"the buffer {name} differs")
    return [fallback for call in calls for fallback in call.fallbacks]


def _results(module: Any, forward: Any) -> list[torch.Tensor]:
    """The tensors that ``module`` returns, and the gradients of its operands and parameters."""
    leaves, spec = pytree.tree_flatten((forward.args, forward.kwargs))
    leaves = [
        leaf.detach().clone().requires_grad_(leaf.requires_grad)
        if isinstance(leaf, torch.Tensor)
        else leaf
        for leaf in leaves
    ]
    args, kwargs = pytree.tree_unflatten(leaves, spec)
    torch.manual_seed(1)
    results, _ = pytree.tree_flatten(module(*args, **kwargs))
    found = [each for each in results if isinstance(each, torch.Tensor)]
    wanted = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    wanted += [weight for weight in module.parameters() if weight.requires_grad]
    grown = [each for each in found if each.requires_grad]
    if not grown or not wanted:
        return found
    total: Any = sum((each * each).sum() for each in grown)
    gradients = torch.autograd.grad(total, wanted, allow_unused=True)
    return [*found, *(each for each in gradients if each is not None)]


def main(names: Sequence[str]) -> int:
    """The command."""
    return tell(_reports(names))


def _reports(names: Sequence[str]) -> Iterator[Report]:
    for module in MODULES:
        if not names or name_of(module) in names:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield check(module)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
