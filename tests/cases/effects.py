"""Rows of print, callback and check, whose results are tokens, or those of a Python function."""

from __future__ import annotations

from typing import Any

from gptrs import tree
from gptrs.ir.host_functions import HostFunction
from gptrs.ir.types import Type
from tests.cases.sample import Case, sample
from tests.support.lazy_torch import torch

# torch is only partly typed, and the functions that are called are not.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false

_PAIR = tree.Structure(tuple, (0, 1), (tree.LEAF, tree.LEAF))
_HOST = HostFunction(lambda x, y: (y * 2, x + 1), _PAIR, _PAIR)
_QUIET = HostFunction(lambda x: None, tree.Structure(tuple, (0,), (tree.LEAF,)), None)


def _called(values: Any, **attrs: Any) -> Any:
    return (values[1] * 2, values[0] + 1) if attrs.get("result") else torch.tensor(False)


EFFECTS = (
    Case(
        "print",
        (sample(("T[S,3]", "T[]"), text="{0} and {1:.2f}"), sample((), text="{{}}")),
        lambda *_, **__: torch.tensor(False),
        ("f32", "si8", "bf16"),
    ),
    Case(
        "callback",
        (
            sample(
                ("f32[2,3]", "si32[4]"),
                function=_HOST,
                result=(Type.parse("si32[4]"), Type.parse("f32[2,3]")),
            ),
            sample(("f64[2]",), function=_QUIET),
        ),
        _called,
        fixed="the function has types of its own",
    ),
    Case(
        "check",
        (sample("i1[] positive", ("T[S,2]",), text="found {0}"),),
        lambda holds, *_, **__: holds,
        ("f32", "f16"),
    ),
)
