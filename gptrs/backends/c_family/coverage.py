"""What has a form in the C family, as text: the lists of the documentation.

python -m gptrs.backends.c_family.coverage
"""

from __future__ import annotations

from collections.abc import Iterator

from gptrs.backends.c_family.kernels import KERNELS
from gptrs.backends.c_family.scalars import REDUCTIONS, RULES
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS
from gptrs.ir.kinds import OpKind
from gptrs.ir.program import Operation
from gptrs.ir.registry import is_builtin

LOOPS = "In fused loops"
OWN = "Kernels of their own"
DEFINED = "By their definitions, in ops that have a form"
CONTROL = "Branches and loops over the functions of their regions"
NONE = "No form yet"


def coverage() -> dict[str, list[str]]:
    """The names of the built-in ops, sorted, by what computes them."""
    found: dict[str, list[str]] = {LOOPS: [], OWN: [], DEFINED: [], CONTROL: [], NONE: []}
    for name, op in sorted(OPS.items()):
        if is_builtin(op):
            found[_form(op)].append(name)
    return found


def _form(op: Operation) -> str:
    if op in KERNELS:
        return OWN
    if op in RULES or op in REDUCTIONS or op.kind in (OpKind.VIEW, OpKind.FILL):
        return LOOPS
    if op.control:
        return CONTROL
    return DEFINED if isinstance(op, Composite) else NONE


def lines() -> Iterator[str]:
    """The lists as Markdown."""
    for form, names in coverage().items():
        yield f"- **{form}**: {', '.join(f'`{name}`' for name in names)}"


if __name__ == "__main__":
    print("\n".join(lines()))
