"""The ops that run on the host, as the table of docs/devices.md has them.

python -m gptrs.backends.torch.coverage
"""

from __future__ import annotations

from collections.abc import Iterator

from gptrs.backends.torch.op_table import ROWS
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.literal import constant
from gptrs.ir.primitives import Elementwise
from gptrs.ir.program import Operation
from gptrs.ir.registry import is_builtin

_WRITTEN = (OpKind.CONTROL, OpKind.EFFECT, OpKind.CALL)
"""Ops that the emitted function has a form of its own for."""


def host_ops() -> Iterator[tuple[str, str]]:
    """Names of ops that have no form in torch, and for what: empty where that is everything."""
    for name, op in sorted(OPS.items()):
        if not is_builtin(op) or op.kind in _WRITTEN or op is constant:
            continue
        if isinstance(op, Composite):  # left to its definition where there is no row
            continue
        if op not in ROWS:
            yield name, ""
        elif missing := ", ".join(_missing(op)):
            yield name, missing


def _missing(op: Operation) -> Iterator[str]:
    rows = ROWS[op]
    if isinstance(op, Elementwise):
        kinds = {kind for row in rows for kind in row.kinds}
        yield from (f"{kind} numbers" for kind in op.kinds if kind not in kinds)
    yield from (row.but for row in rows if row.but)


def claimed() -> list[str]:
    """The composites that torch has whole, some for some dtypes only."""
    return sorted(op.name for op in ROWS if isinstance(op, Composite))


def table() -> str:
    """Markdown."""
    lines = ["| on the host | for |", "|---|---|"]
    whole = [f"`{name}`" for name, why in host_ops() if not why]
    lines.append(f"| {' '.join(whole)} | all dtypes |")
    reasons: dict[str, list[str]] = {}
    for name, why in host_ops():
        if why:
            reasons.setdefault(why, []).append(f"`{name}`")
    lines += [f"| {' '.join(names)} | {why} |" for why, names in reasons.items()]
    names = " ".join(f"`{name}`" for name in claimed())
    return "\n".join([*lines, "", f"Claimed whole: {names}.", ""])


if __name__ == "__main__":
    print(table())
