"""Rows of cond, while_loop and scan, whose regions are programs."""

from __future__ import annotations

from typing import Any

from gptrs.ptir import ops as ptir
from tests.cases.programs import record
from tests.cases.sample import Case, sample
from tests.support.lazy_torch import torch

# torch is only partly typed, and the functions that become regions are not.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false

TYPES = "the regions have types of their own"


def _cond(pred: Any, xs: Any, **_: object) -> Any:
    if len(xs) == 2:
        return -xs[0] + xs[1] if pred else xs[0] * 2
    return (xs[0], xs[0] > 0) if pred else (-xs[0], xs[0] < 0)


def _while(state: Any, captured: Any = (), **_: object) -> Any:
    if len(state) == 2:
        n, x = state
        while n < 5:
            n, x = n + 1, x * 2
        return n, x
    (x,) = state
    limit = captured[0] if captured else 50
    while x.max() < limit:
        x = x * 2 + 1
    return x


def _scan(state: Any, xs: Any = (), captured: Any = (), **attrs: Any) -> Any:
    length = attrs["length"] if attrs.get("length") is not None else len(xs[0])
    order = reversed(range(length)) if attrs.get("reverse") else range(length)
    if len(xs) == 2:
        sums = torch.cumsum(xs[1], 0)
        return state[0] + sums[-1], torch.stack([*xs[0]]) * 2, torch.cat((sums[:1] * 0, sums[:-1]))
    if not state:
        return torch.stack([x * 2 for x in xs[0]])
    (total,) = state
    for n in order:
        total = total * captured[0] + xs[0][n] if captured else total * 0.5 + 1
    return total


CONTROL = (
    Case(
        "cond",
        (
            *[
                sample(
                    pred,
                    ("T[2,3] any", "T[3] any"),
                    then=record(lambda x, y: ptir.neg(x) + y, "f32[2,3]", "f32[3]"),
                    otherwise=record(lambda x, y: x * 2, "f32[2,3]", "f32[3]"),
                )
                for pred in ("i1[]", "i1[] again")
            ],
            sample(
                "i1[]",
                ("T[3] any",),
                then=record(lambda x: (x, x > 0), "f32[3]"),
                otherwise=record(lambda x: (ptir.neg(x), x < 0), "f32[3]"),
            ),
        ),
        _cond,
        fixed=TYPES,
    ),
    Case(
        "while_loop",
        (
            sample(
                ("T[3] positive",),
                condition=record(lambda x: ptir.reduce_max(x) < 50, "f32[3]"),
                body=record(lambda x: x * 2 + 1, "f32[3]"),
            ),
            sample(
                ("T[2] positive",),
                ("T[] 9..90",),
                condition=record(lambda x, n: ptir.reduce_max(x) < n, "f32[2]", "f32[]"),
                body=record(lambda x, n: x * 2 + 1, "f32[2]", "f32[]"),
            ),
            sample(
                ("si32[] 0..9", "T[2] any"),
                condition=record(lambda n, x: n < 5, "si32[]", "f32[2]"),
                body=record(lambda n, x: (n + 1, x * 2), "si32[]", "f32[2]"),
            ),
        ),
        _while,
        fixed=TYPES,
    ),
    Case(
        "scan",
        (
            sample(
                ("T[3]",),
                ("T[4,3]",),
                ("T[] unit",),
                body=record(lambda s, x, c: s * c + x, "f32[3]", "f32[3]", "f32[]"),
            ),
            sample(
                ("T[3]",),
                ("T[4,3]",),
                ("T[] unit",),
                body=record(lambda s, x, c: s * c + x, "f32[3]", "f32[3]", "f32[]"),
                reverse=True,
            ),
            sample(("T[]",), body=record(lambda s: s * 0.5 + 1, "f32[]"), length=7),
            sample((), ("T[5] any",), body=record(lambda x: x * 2, "f32[]")),
            sample(
                ("si32[3] 0..0",),
                ("T[4,2] any", "si32[4,3]"),
                body=record(lambda s, x, n: (s + n, x * 2, s), "si32[3]", "f32[2]", "si32[3]"),
            ),
        ),
        _scan,
        ulps=4,
        magnitude=8,
        why="in a kernel a product and a sum may be rounded once, and later steps go on with it",
        fixed=TYPES,
    ),
)
