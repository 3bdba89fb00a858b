"""Op traits: nothing outside of `gptrs.ir.ops` compares ops by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gptrs.ir.dispatch import OPS
from gptrs.ir.kinds import OpKind
from tests.support import ROOT

PACKAGE = ROOT / "gptrs"
FOLDERS = ("ir", "passes", "backends", "debug", "jit")
REASONS = {
    "ir/registry.py": "it maps names to ops",
    "ir/parsing.py": "a program's text names its ops",
    "jit/chooser.py": "policies come as text: GPTRS_OVERRIDES='softmax: force=portable'",
}
"""Files that look ops up by a name that users wrote."""
MOST = 10
NO_OPS = {
    "backends/faer/run.py": "the kind of a home: 'constant'",
    "backends/faer/plan.py": "the kind of a buffer: 'constant'",
    "passes/idioms/attention.py": "the kind of a mask: 'add'",
    "backends/faer/scalars.py": "a function that kernels have: 'maximum'",
    "backends/faer/scalar_functions.py": "functions that kernels have: 'exp', 'log'",
    "backends/index_expansions.py": "what elements at one place do: 'add', 'mul', 'mean'",
    "backends/faer/binding.py": "the kind of a home: 'constant'",
    "backends/faer/repeat_layout.py": "the kind of a home: 'constant'",
    "backends/torch/functions/indexing.py": "what elements at one place do: 'add', 'mul', 'mean'",
    "backends/torch/functions/reductions.py": "functions of torch: 'cumsum', 'cumprod'",
    "backends/torch/functions/windows.py": "what the elements of a window do: 'add', 'mul'",
    "backends/torch/op_table/arrays.py": "what rows of a segment do: 'mul'",
    "debug/diff.py": "a word of difflib: 'equal'",
    "ir/nan_watch.py": "what a mode does: 'log'",
    "ir/checks.py": "a kind of dtypes: 'complex'",
    "ir/promotion.py": "a kind of dtypes: 'complex'",
    "ir/types.py": "a kind of dtypes: 'complex'",
    "ir/lexing.py": "a kind of token: 'sign'",
}
"""Files that compare other words, which are names of ops too."""


def files() -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            name = path.relative_to(PACKAGE).as_posix()
            if not name.startswith("ir/ops/"):
                yield name, ast.parse(path.read_text(encoding="utf-8"))


def is_name_of_op(node: ast.AST, known: set[str]) -> bool:
    """Whether an expression is the name of an op: ``x.op.name``, ``op.name``, or a variable that
    was assigned one."""
    if isinstance(node, ast.Name):
        return node.id in known
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    owner = node.value
    return (isinstance(owner, ast.Name) and owner.id in ("op", "composite")) or (
        isinstance(owner, ast.Attribute) and owner.attr == "op"
    )


def comparisons(tree: ast.Module) -> Iterator[int]:
    """The lines where a name of an op is compared, looked for in a collection, or matched."""
    known: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and is_name_of_op(node.value, set()):
            known |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        line = node.lineno if isinstance(node, ast.expr | ast.stmt) else 0
        match node:
            case ast.Compare():
                found = any(is_name_of_op(side, known) for side in (node.left, *node.comparators))
            case ast.Match():
                found = is_name_of_op(node.subject, known)
            case ast.Subscript(ctx=ast.Load()):
                found = is_name_of_op(node.slice, known)
            case ast.Call(func=ast.Attribute(attr="get" | "setdefault" | "pop"), args=[key, *_]):
                found = is_name_of_op(key, known)
            case _:
                found = False
        if found:
            yield line


def names_in_comparisons(tree: ast.Module) -> Iterator[int]:
    """The lines where anything is compared with the name of an op, or with several, and the sets
    and dicts of such names."""

    def named(node: ast.AST) -> bool:
        return isinstance(node, ast.Constant) and node.value in OPS

    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                sides = (node.left, *node.comparators)
                parts = [p for s in sides for p in (s.elts if isinstance(s, ast.Tuple) else [s])]
                if any(map(named, parts)):
                    yield node.lineno
            case ast.MatchValue(value=value) if named(value):
                yield node.lineno
            case ast.Set(elts=elts) | ast.List(elts=elts) if elts and all(map(named, elts)):
                yield node.lineno
            case ast.Dict(keys=keys) if keys and all(k is not None and named(k) for k in keys):
                yield node.lineno
            case _:
                pass


def test_nothing_compares_names_of_ops() -> None:
    found = {name: [*comparisons(tree)] for name, tree in files()}
    places = [f"{n}:{line}" for n, lines in found.items() for line in lines]
    assert {place.partition(":")[0] for place in places} <= REASONS.keys(), places
    assert len(places) <= MOST, places


def test_no_text_that_is_compared_is_the_name_of_an_op() -> None:
    found = {name: [*names_in_comparisons(tree)] for name, tree in files()}
    places = [f"{n}:{line}" for n, lines in found.items() for line in lines]
    strange = [p for p in places if p.partition(":")[0] not in REASONS.keys() | NO_OPS.keys()]
    assert not strange


def test_what_is_counted() -> None:
    text = """
name = instruction.op.name
name == "reshape"
instruction.op.name in ("add", "mul")
op.name not in SET
TABLE[maker.op.name]
TABLE.get(op.name)
match maker.op.name:
    case "neg": pass
"""
    assert len([*comparisons(ast.parse(text))]) == 6
    words = """
x == "add"
{"add", "mul"}
{"add": 1}
x in ("less", y)
match x:
    case "neg": pass
"""
    assert len([*names_in_comparisons(ast.parse(words))]) == 5


def test_every_op_has_a_kind() -> None:
    unknown = {op.name for op in OPS.values() if op.kind is OpKind.OTHER}
    assert unknown == {"rotary"}, "it works on halves of rows"
