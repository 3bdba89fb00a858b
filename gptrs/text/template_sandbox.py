"""The sandbox of chat templates: jinja2's ImmutableSandboxedEnvironment under a work budget.

What a template sees is that of transformers: loop controls, the block ``generation``, the filter
``tojson``, and the functions ``raise_exception``, ``strftime_now``, ``namespace`` and ``dict``.
`gptrs.text.template_budget` is charged at each turn of a loop, each call, filter, test, operator,
comparison, slice and output. Nothing is folded at compile time outside of the budget.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, ClassVar

from jinja2 import Template, nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from gptrs.text.template_budget import NODE, current
from gptrs.text.template_charges import charge_call, charged_filter, charged_test


class RefusedError(TemplateError):
    """The template called ``raise_exception``."""


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment that compiles and runs chat templates."""

    intercepted_binops: ClassVar[frozenset[str]] = frozenset(("+", "-", "*", "/", "//", "%", "**"))  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            finalize=_finalize,
            extensions=[_Generation, loopcontrols],
        )
        self.filters["tojson"] = _to_json
        tables: Any = (self.filters, self.tests)
        for name, function in list(tables[0].items()):
            self.filters[name] = charged_filter(name, function)
        for name, function in list(tables[1].items()):
            self.tests[name] = charged_test(name, function)
        del self.globals["lipsum"]
        self.globals |= {
            "raise_exception": _raise_exception,
            "strftime_now": _strftime_now,
            "dict": _Dict(),
            "namespace": _Namespace,
        }

    def compiled(self, source: str) -> Template:
        """The template ``source``. Raises what jinja2 raises, and `BudgetError`."""
        tree = _Charges(self).visit(self.parse(source))
        return Template.from_code(self, self.compile(tree), self.make_globals(None), None)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The operator, charged."""
        current().spend_on_operator(operator, left, right)
        return self.binop_table[operator](left, right)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """The element, whose key is charged if its hash is that of many."""
        if isinstance(argument, tuple):
            current().spend_on(argument)  # pyright: ignore[reportUnknownArgumentType]
        return super().getitem(obj, argument)  # pyright: ignore[reportUnknownArgumentType]

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """The call, charged."""
        if getattr(__obj, "__self__", None) is __self:  # a charge of `_Charges`
            return __obj(*args)
        joins = getattr(__obj, "__name__", "") == "join"
        if joins and args and hasattr(args[0], "__next__"):  # ', '.join(names | map('upper'))
            args = (list(args[0]), *args[1:])
        charge_call(__obj, args, kwargs)
        return super().call(__context, __obj, *args, **kwargs)

    def spend(self, units: int) -> bool:
        """Charge ``units`` for nodes that run. True."""
        current().spend(units)
        return True

    def weighed(self, value: Any) -> Any:
        """``value``, charged for all that it holds."""
        current().spend_on(value)
        return value

    def searched(self, value: Any) -> Any:
        """``value``, charged for a search in it."""
        if not isinstance(value, dict):
            current().spend_on(value)
        return value  # pyright: ignore[reportUnknownVariableType]

    def sliced(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        """``value[start:stop:step]``, charged."""
        current().spend_on_length(value)
        return value[start:stop:step]

    def joined(self, *values: Any) -> str:
        """The texts of ``values`` joined, charged."""
        current().spend_on(*values)
        return "".join(map(str, values))


class _Charges(NodeTransformer):
    """Inserts calls of the methods of `Sandbox` above into the syntax tree of a template."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        units = _units(node)
        self.generic_visit(node)
        node.body.insert(0, self._statement(node, units))
        if node.test is not None:
            node.test = nodes.And(self._call(node, "spend", nodes.Const(units)), node.test)
        return node

    def visit_Macro(self, node: Any) -> nodes.Node:  # noqa: N802
        units = _units(node)
        self.generic_visit(node)
        node.body.insert(0, self._statement(node, units))
        return node

    visit_CallBlock = visit_Block = visit_Macro  # noqa: N815

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return self._call(node, "joined", *node.nodes)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return self._call(node, "sliced", node.node, *(b or nodes.Const(None) for b in bounds))

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        first = node.ops[0]
        constant = isinstance(node.expr, nodes.Const) or isinstance(first.expr, nodes.Const)
        if constant and len(node.ops) == 1 and first.op not in ("in", "notin"):
            return node  # equal to a constant, or not: quickly known
        node.expr = self._weighed(node.expr)
        for operand in node.ops:
            method = "searched" if operand.op in ("in", "notin") else "weighed"
            operand.expr = self._weighed(operand.expr, method)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.key = self._weighed(node.key)
        return node

    def _weighed(self, node: nodes.Expr, method: str = "weighed") -> nodes.Expr:
        return node if isinstance(node, nodes.Const) else self._call(node, method, node)

    def _statement(self, node: nodes.Node, units: int) -> nodes.Node:
        statement = nodes.ExprStmt(self._call(node, "spend", nodes.Const(units)))
        return statement.set_lineno(node.lineno).set_environment(self._sandbox)

    def _call(self, at: nodes.Node, method: str, *arguments: nodes.Expr) -> nodes.Expr:
        called = nodes.EnvironmentAttribute(method)
        call = nodes.Call(called, list(arguments), [], None, None)
        call.set_lineno(at.lineno).set_environment(self._sandbox)
        return call


def _units(node: nodes.Node) -> int:
    """The charge for one run of all that is in ``node``."""
    data = sum(len(each.data) for each in node.find_all(nodes.TemplateData))
    return data + NODE * sum(1 for _ in node.find_all(nodes.Node))


class _Generation(Extension):
    """``{% generation %} ... {% endgeneration %}``: what is inside, in a scope of its own."""

    tags: ClassVar[set[str]] = {"generation"}  # pyright: ignore[reportIncompatibleVariableOverride]

    def parse(self, parser: Parser) -> nodes.Node:
        """The block at the parser's place."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class _Dict:
    """``dict`` of templates: only what makes one."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        current().spend_on(*args)
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        """As ``dict.fromkeys``."""
        current().spend_on(*args)
        return dict.fromkeys(*args)


class _Namespace(Namespace):
    """``namespace`` of templates: no names that begin with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        names = dict(*args[1:], **kwargs)
        for name in names:
            _refuse_private(name)
        Namespace.__init__(args[0], names)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        super().__setitem__(name, value)


def _refuse_private(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace takes no name that begins with _, found {name!r}")


def _raise_exception(message: object) -> None:
    raise RefusedError(str(message))


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is, without jinja2's escapes for HTML."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _finalize(value: Any) -> Any:
    current().spend_on(value)
    return value
