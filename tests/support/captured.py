"""Captured state of traced functions: globals to read, and values to mutate."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from gptrs import ptir
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import f32
from gptrs.nn.module import Module
from tests.support.lazy_torch import torch

X = np.arange(1, 4, dtype=np.float32)


class Config:
    kind_factor = 2.0

    def __init__(self, factor: Any) -> None:
        self.factor = factor
        self.calls = 0

    def times(self, x: Any) -> Any:
        return x * self.own() * scale

    def own(self) -> Any:
        return self.factor

    @property
    def doubled(self) -> Any:
        return self.factor * 2

    def __getitem__(self, key: int) -> Any:
        return key * scale

    def unused(self) -> Any:
        return unused_factor


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor: Any) -> None:
        self.factor = factor


class Layer(Module):
    weight: Parameter

    def __call__(self, x: Any) -> Any:
        return x * self.weight * scale


@dataclass
class Record:
    factor: Any

    def times(self, x: Any) -> Any:
        return x * self.factor * scale


scale: float = 1.0
unused_factor: Any = 1.0


def helper(x: Any) -> Any:
    return inner_helper(x)


def inner_helper(x: Any) -> Any:
    return x * scale


def set_scale(value: float) -> None:
    global scale
    scale = value


def layer(value: float) -> Layer:
    return Layer(Parameter(np.full(3, value, np.float32), "w"))


CONFIG, SLOTTED, RECORD, LAYER = Config(3.0), Slotted(3.0), Record(3.0), layer(3.0)
SCALED: dict[str, Callable[[Any], Any]] = {
    "global": lambda x: x * scale,
    "helper": helper,
    "lambda in a dict": lambda x: {"f": lambda y: y * scale}["f"](x),
    "nested function": lambda x: next(y * scale for y in (x,)),
    "jitted helper": lambda x: JITTED_HELPER(x),
    "jitted partial": lambda x: JITTED_PARTIAL(x),
    "partial": lambda x: PARTIAL(x),
    "method": lambda x: CONFIG.times(x),
    "special method": lambda x: x * CONFIG[1],
    "module": lambda x: LAYER(x),
    "dataclass": lambda x: RECORD.times(x),
    "cached helper": lambda x: x * CACHED(),
    "list of functions": lambda x: FUNCTIONS[0](x),
    "numpy vectorised default": lambda x: WITH_CLOSURE(x),
}
JITTED_HELPER = ptir.jit(helper)
JITTED_PARTIAL = ptir.jit(partial(helper))
PARTIAL = partial(inner_helper)
FUNCTIONS = [helper]


class _Uncached:
    def __call__(self) -> float:
        return scale


CACHED = _Uncached()


def _closure() -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        return helper(x)

    return call


WITH_CLOSURE = _closure()


class _OwnDict(dict[str, Any]):
    pass


def _set(box: Any, value: Any) -> None:
    box.factor = value


def _put(box: Any, value: Any) -> None:
    box["k" if isinstance(box, dict) else 0] = value


def _fill(box: Any, value: Any) -> None:
    box[...] = value


def _widened(box: Any) -> Any:
    return ptir.cast(box, dtype=f32)


# A value that holds 2.0, how to read it, how to change it in place.
HOLDERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any, Any], None]]] = {
    "object": (lambda: Config(2.0), lambda b: b.factor, _set),
    "object by method": (lambda: Config(2.0), lambda b: b.own(), _set),
    "object by property": (lambda: Config(1.0), lambda b: b.doubled, lambda b, v: _set(b, v / 2)),
    "object by name": (lambda: Config(2.0), lambda b: getattr(b, "fac" + "tor"), _set),
    "slots": (lambda: Slotted(2.0), lambda b: b.factor, _set),
    "dataclass": (lambda: Record(2.0), lambda b: b.factor, _set),
    "namespace": (lambda: SimpleNamespace(factor=2.0), lambda b: b.factor, _set),
    "argparse": (lambda: argparse.Namespace(factor=2.0), lambda b: b.factor, _set),
    "class": (lambda: type("C", (Config,), {"factor": 2.0}), lambda b: b.factor, _set),
    "class of object": (lambda: Config(0), lambda b: b.kind_factor, lambda b, v: _set_kind(v)),
    "function": (lambda: _with_attribute(), lambda b: b.factor, _set),
    "list": (lambda: [2.0], lambda b: b[0], _put),
    "dict": (lambda: {"k": 2.0}, lambda b: b["k"], _put),
    "nested": (lambda: ([{"k": 2.0}],), lambda b: b[0][0]["k"], lambda b, v: _put(b[0][0], v)),
    "OrderedDict": (lambda: OrderedDict(k=2.0), lambda b: b["k"], _put),
    "defaultdict": (lambda: defaultdict(int, k=2.0), lambda b: b["k"], _put),
    "own dict": (lambda: _OwnDict(k=2.0), lambda b: b["k"], _put),
    "deque": (lambda: deque([2.0]), lambda b: b[0], _put),
    "set": (lambda: {2.0}, lambda b: max(b), lambda b, v: b.add(v)),
    "array": (lambda: np.full(3, 2, np.float32), lambda b: b, _fill),
    "big array": (lambda: np.full((9999, 3), 2, np.float32), lambda b: b[0], _fill),
    "torch": (lambda: torch.full((3,), 2.0), lambda b: b, _fill),
    "bf16": (lambda: torch.full((3,), 2.0).bfloat16(), _widened, _fill),
    "partial": (lambda: partial(max, [2.0]), lambda b: b(), lambda b, v: b.args[0].append(v)),
    "bound method": (lambda: Config(2.0).own, lambda b: b(), lambda b, v: _set(b.__self__, v)),
    "module": (lambda: _module(), lambda b: b.factor, _set),
    "list of objects": (
        lambda: [Config(1.0), Config(2.0)],
        lambda b: b[1].factor,
        lambda b, v: _set(b[1], v),
    ),
}


def _module() -> types.ModuleType:
    module = types.ModuleType("user_module")
    vars(module)["factor"] = 2.0
    return module


def _set_kind(value: float) -> None:
    Config.kind_factor = value


def _with_attribute() -> Callable[[], None]:
    def function() -> None: ...

    vars(function)["factor"] = 2.0
    return function
