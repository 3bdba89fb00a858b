"""Modules for notebooks: their layers as a tree that opens, with the sizes of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from gptrs import tree
from gptrs.byte_sizes import size_text
from gptrs.html_tables import Markup, joined, opening, styled, table
from gptrs.ir.operand_trees import is_module
from gptrs.ir.parameter import Parameter


def module_tree(module: object) -> Markup:
    """The tree of ``module``. A parameter that occurs twice counts once, where it is met first; one
    that is not loaded stays so."""
    made, _ = _node("", module, set(), is_open=True)
    return made


def _node(
    name: str, value: object, met: set[int], *, is_open: bool = False
) -> tuple[Markup, list[Parameter]]:
    """A container with all that is in it, empty where no layer and no parameter is; and its
    parameters that were not ``met`` before."""
    container = tree.container_of(type(value))
    if container is None or id(value) in met:
        return Markup(), []
    met.add(id(value))
    rows: list[tuple[str, str, str, str]] = []
    parts: list[Markup] = []
    found: list[Parameter] = []
    for label, child in zip(*container.split(value), strict=True):
        if isinstance(child, Parameter):
            rows.append(_row(str(label), child, shared=id(child) in met))
            found += [child] * (id(child) not in met)
            met.add(id(child))
        else:
            part, inner = _node(str(label), child, met)
            parts += [part] * bool(part)
            found += inner
    if not rows and not parts and not is_module(value):
        return Markup(), []
    if rows:
        parts.insert(0, table(("parameter", "type", "memory", ""), rows, numbers=(2,)))
    return opening(_title(name, value, found), *parts, is_open=is_open), found


def _row(name: str, parameter: Parameter, *, shared: bool) -> tuple[str, str, str, str]:
    state = "shared" if shared else "" if parameter.in_memory else "not in memory"
    return name, str(parameter.type), size_text(parameter.bytes), styled("dim", state)


def _title(name: str, value: object, found: Sequence[Parameter]) -> Markup:
    kind = type(value).__name__
    if isinstance(value, list | tuple | dict):
        kind = f"{kind} of {len(cast('Sequence[object]', value))}"
    count, size = sum(int(p.size) for p in found), sum(p.bytes for p in found)
    sizes = f" {count:,} parameters, {size_text(size)}" if found else ""
    sizes += "".join(f" {dtype}" for dtype in dict.fromkeys(str(p.dtype) for p in found))
    return joined([f"{name}: " if name else "", styled("op", kind), styled("dim", sizes)])
