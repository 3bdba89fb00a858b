"""The table of names of `gptrs.numpy_api`: what each module has, and what ``ptir`` finds."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from gptrs import numpy_api, ptir
from gptrs.ir.dispatch import FUNCTIONS, OPS


@pytest.mark.parametrize("module", numpy_api.MODULES)
def test_a_module_has_the_names_of_the_table(module: str) -> None:
    found: Any = import_module(f"gptrs.numpy_api.{module}")
    assert sorted(found.__all__) == sorted(numpy_api.MODULES[module])
    for name in found.__all__:
        assert getattr(ptir, name) is FUNCTIONS[name] is getattr(found, name)
        assert getattr(ptir, name).__doc__


def test_a_name_has_one_module() -> None:
    names = [name for module in numpy_api.MODULES.values() for name in module]
    assert len(names) == len({*names, *numpy_api.ALIASES}) - len(numpy_api.ALIASES)


@pytest.mark.parametrize("name", numpy_api.ALIASES)
def test_an_alias_is_a_function_or_an_op(name: str) -> None:
    target = numpy_api.ALIASES[name]
    assert target not in numpy_api.ALIASES
    assert getattr(ptir, name) is (FUNCTIONS[target] if target in numpy_api.NAMES else OPS[target])


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ptir, "no_such_function")
