"""Mutations of closures, globals, functions and modules."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

import sys
import types
from functools import partial, wraps
from typing import Any

from gptrs import ptir
from tests.changes.case import Case, Changes, collected_in

FUNCTIONS: Changes = {}
mutation = collected_in(FUNCTIONS)


def helper(x: Any, k: float = 2.0, *, j: float = 1.0) -> Any:
    return x * k + j


def other(x: Any, k: float = 2.0, *, j: float = 1.0) -> Any:
    return x * k - j


def plus_max(x: Any) -> Any:
    return x * max(2.0, 3.0)


@mutation
def _closure_reassigned() -> Case:
    k = 2.0

    def change() -> None:
        nonlocal k
        k = 3.0

    return lambda x: x * k, change


@mutation
def _closure_assigned_at_last() -> Case:
    def change() -> None:
        nonlocal k
        k = 3.0

    def function(x: Any) -> Any:
        try:
            return x * k
        except NameError:
            return x

    if not function:
        k = 0.0  # a cell of this function that is empty
    return function, change


@mutation
def _global_rebound() -> Case:
    scope: dict[str, Any] = {"k": 2.0}
    exec("def function(x): return x * k", scope)
    return scope["function"], lambda: scope.update(k=3.0)


@mutation
def _global_deleted() -> Case:
    scope: dict[str, Any] = {"max": lambda *_: 7.0}
    exec("def function(x): return x * max(1.0, 2.0)", scope)
    return scope["function"], lambda: scope.pop("max")


@mutation
def _global_hides_a_builtin() -> Case:
    scope: dict[str, Any] = {"helper": plus_max}
    exec("def function(x): return x * max(1.0, 2.0)", scope)
    return scope["function"], lambda: scope.update(max=lambda *_: 7.0)


@mutation
def _global_of_a_helper_hides_a_builtin() -> Case:
    scope: dict[str, Any] = {}
    exec("def function(x): return x * max(1.0, 2.0)", scope)
    inner = scope["function"]
    return lambda x: inner(x), lambda: scope.update(max=lambda *_: 7.0)


def copy_of(function: Any) -> Any:
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, dict(function.__kwdefaults__)
    return made


@mutation
def _code_replaced() -> Case:
    function = copy_of(helper)
    return lambda x: function(x), lambda: setattr(function, "__code__", other.__code__)


@mutation
def _code_of_the_function_itself_replaced() -> Case:
    function = copy_of(helper)
    return function, lambda: setattr(function, "__code__", other.__code__)


@mutation
def _defaults_replaced() -> Case:
    function = copy_of(helper)
    return lambda x: function(x), lambda: setattr(function, "__defaults__", (5.0,))


@mutation
def _keyword_default_set() -> Case:
    function = copy_of(helper)
    return lambda x: function(x), lambda: function.__kwdefaults__.update(j=5.0)


@mutation
def _function_attribute_added() -> Case:
    function = copy_of(helper)
    return (
        lambda x: x * (function.k if hasattr(function, "k") else 1.0),
        lambda: setattr(function, "k", 5.0),
    )


@mutation
def _wrapped_function_replaced() -> Case:
    @wraps(helper)
    def wrapper(x: Any) -> Any:
        return wrapper.__wrapped__(x)

    function: Any = wrapper
    return lambda x: function(x), lambda: setattr(function, "__wrapped__", other)


@mutation
def _function_of_a_jitted_one_replaced() -> Case:
    inner: Any = ptir.jit(copy_of(helper))
    return lambda x: inner(x), lambda: setattr(inner.__wrapped__, "__code__", other.__code__)


@mutation
def _partial_changed() -> Case:
    made = partial(helper, k=2.0)
    return lambda x: made(x), lambda: made.keywords.update(k=3.0)


@mutation
def _module_attribute_added() -> Case:
    module: Any = types.ModuleType("user_module_of_calls")
    return (
        lambda x: x * (module.k if hasattr(module, "k") else 1.0),
        lambda: setattr(module, "k", 3.0),
    )


@mutation
def _import_replaced() -> Case:
    first, second = (types.ModuleType("gptrs_test_calls") for _ in range(2))
    first.k, second.k = 2.0, 3.0
    sys.modules["gptrs_test_calls"] = first

    def function(x: Any) -> Any:
        import gptrs_test_calls  # pyright: ignore[reportMissingImports]

        return x * gptrs_test_calls.k

    return function, lambda: sys.modules.update(gptrs_test_calls=second)
