"""Fusion into regions and their loop nests, without compiling any."""

from __future__ import annotations

from typing import Any

import pytest

from gptrs import ptir
from gptrs.backends.faer.render import render
from gptrs.backends.fusible import DTYPES, can_fuse
from gptrs.backends.fusion import FusedProgram, fuse
from gptrs.backends.inlining import MOST_MEMBERS
from gptrs.backends.regions import Region
from gptrs.backends.views import Reduce, View, walk
from gptrs.ir.dims import Shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.parsing import parse
from gptrs.ir.program import Fails

S, T = ptir.dim("S"), ptir.dim("T")
FAILING = 'x: "si32[?S]", y: "si32[?S]", z: "si32[?S-1]", t: "f32[?T]"'


def grouped(params: str, body: str, results: str) -> FusedProgram:
    """The regions of a program written as it is printed; S and T are its symbols."""
    lines = "\n".join(f"    {line.strip()}" for line in body.strip().splitlines())
    return fuse(
        parse(
            "# ptir.v0.4\nfrom gptrs.ptir import ops as ptir\n"
            f'S = ptir.dim("S")\nT = ptir.dim("T")\n'
            f"def f({params}):\n{lines}\n    return {results}\n"
        )
    )


def only(grouping: FusedProgram) -> Region:
    assert not grouping.outside
    (region,) = grouping.regions
    return region


def test_a_chain_is_one_flat_loop() -> None:
    region = only(
        grouped(
            'x: "f32[?S,3,?T]"',
            """
            a = ptir.add(x, x)
            b = ptir.reshape(a, shape=(S * 3, T))
            c = ptir.exp(b)
            """,
            "c",
        )
    )
    assert (region.is_flat, str(region.extent)) == (True, "3*S*T")
    assert len(region.members) == 3


def test_broadcast_rows_keep_two_loops() -> None:
    region = only(
        grouped(
            'x: "f32[2,?S,8]", y: "f32[8]"',
            """
            b = ptir.broadcast_to(y, shape=(2, S, 8))
            c = ptir.add(x, b)
            """,
            "c",
        )
    )
    assert (tuple(map(str, region.rows)), region.inner) == (("2*S",), (8,))
    assert [v.type.rank for v in region.inputs] == [3, 1]


def test_a_value_for_two_readers_is_stored_once() -> None:
    body = """
    a = ptir.exp(x)
    b = ptir.neg(a)
    c = ptir.abs(a)
    """
    regions = grouped('x: "f32[?S]"', body, "b, c").regions
    assert [len(region.members) for region in regions] == [1, 1, 1]
    assert regions[1].inputs == regions[2].inputs == (regions[0].result,)


def test_what_is_cheap_is_computed_by_each_reader() -> None:
    body = """
    i = ptir.iota(shape=(S,), axis=0)
    p = ptir.less(i, 3)
    b = ptir.select(p, x, 0.0)
    c = ptir.select(p, 1.0, x)
    """
    regions = grouped('x: "f32[?S]"', body, "b, c").regions
    assert [len(region.members) for region in regions] == [3, 3]


def test_a_reshape_across_a_transpose_is_stored_before() -> None:
    body = """
    a = ptir.transpose(x, perm=(1, 0))
    b = ptir.reshape(a, shape=(S * 4,))
    c = ptir.neg(b)
    """
    first, second = grouped('x: "f32[?S,4]"', body, "c").regions
    assert (first.rows, str(first.inner)) == ((4,), "(S,)")
    assert second.is_flat


def test_reductions_of_other_rows_are_stored() -> None:
    body = """
    r = ptir.reduce_sum(x, axes=(1,), keepdims=True)
    c = ptir.reduce_sum(x, axes=(0,), keepdims=True)
    a = ptir.broadcast_to(r, shape=(S, 4))
    b = ptir.broadcast_to(c, shape=(S, 4))
    d = ptir.mul(a, b)
    """
    regions = grouped('x: "f32[?S,4]"', body, "d").regions
    assert len(regions) == 2


def test_a_reduction_over_another_one_is_a_region_of_its_own() -> None:
    body = """
    r = ptir.reduce_max(x, axes=(1,))
    s = ptir.reduce_sum(r, axes=(0,))
    """
    first, second = grouped('x: "f32[?S,8]"', body, "s").regions
    assert second.inputs == (first.result,)


def test_a_reduction_of_few_elements_has_no_rows() -> None:
    body = """
    a = ptir.mul(x, x)
    r = ptir.reduce_sum(a, axes=(1,))
    s = ptir.reduce_sum(r, axes=(0,))
    """
    region = only(grouped('x: "f32[?S,3]"', body, "s"))
    assert not region.rows
    assert [p.extents for p in walk(region.expression) if isinstance(p, Reduce)] == [(S,)]


def test_differences_of_all_pairs_are_not_stored() -> None:
    body = """
    a = ptir.reshape(x, shape=(S, 1))
    b = ptir.broadcast_to(a, shape=(S, S))
    c = ptir.reshape(x, shape=(1, S))
    d = ptir.broadcast_to(c, shape=(S, S))
    e = ptir.sub(b, d)
    f = ptir.reduce_sum(e, axes=(0,))
    g = ptir.reduce_max(e, axes=(1,))
    """
    found = grouped('x: "f32[?S]"', body, "f, g")
    assert [region.inputs for region in found.regions] == 2 * [found.program.params]


@pytest.mark.parametrize(
    "line",
    [
        "b = ptir.div(x, y)",
        "b = ptir.pow(x, y)",
        "b = ptir.shift_left(x, y)",
        "b = ptir.reduce_max(z, axes=(0,))",
        "b = ptir.slice(x, starts=(2,), sizes=(S - 2,), strides=(1,))",
    ],
)
def test_what_may_fail_is_a_region_that_says_so(line: str) -> None:
    region = only(grouped(FAILING, line, "b"))
    assert max(member.fails for member in region.members) is not Fails.NEVER


@pytest.mark.parametrize("line", ["b = ptir.cumsum(x, axis=0)", "b = ptir.div(x, T - 1)"])
def test_what_no_element_can_report_stays_outside(line: str) -> None:
    assert len(grouped(FAILING, line, "b").outside) == 1


@pytest.mark.parametrize(
    "move",
    [
        "c = ptir.slice(b, starts=(0,), sizes=(1,), strides=(1,))",
        "c = ptir.broadcast_to(b, shape=(0, 3))",
    ],
)
def test_elements_that_may_fail_are_all_computed(move: str) -> None:
    """A move that leaves some out reads a stored array."""
    body = f"b = ptir.div(x, y)\n{move}"
    first, second = grouped('x: "si32[3]", y: "si32[3]"', body, "c").regions
    assert second.inputs == (first.result,)


def test_dtypes_that_a_backend_has_no_form_for_stay_outside() -> None:
    program = grouped('x: "fp8_e5m2[3]"', "b = ptir.neg(x)", "b").program
    assert fuse(program, lambda i: can_fuse(i, DTYPES - {"fp8_e5m2"})).outside


def test_a_long_chain_is_cut() -> None:
    body = "\n".join(f"v{i + 1} = ptir.neg(v{i})" for i in range(3 * MOST_MEMBERS))
    regions = grouped('v0: "f32[?S]"', body, f"v{3 * MOST_MEMBERS}").regions
    assert len(regions) >= 3
    assert max(len(region.members) for region in regions) <= MOST_MEMBERS


def test_a_copy_names_what_it_copies() -> None:
    grouping = grouped('x: "f32[?S,4]"', "b = ptir.reshape(x, shape=(S * 4,))", "b")
    assert only(grouping).copies is grouping.program.params[0]
    part = "b = ptir.slice(x, starts=(0, 0), sizes=(S, 2), strides=(1, 1))"
    assert only(grouped('x: "f32[?S,4]"', part, "b")).copies is None


def texts(size: int, first: str, second: str) -> list[str]:
    grouping = grouped(
        f'{first}: "f32[?S,{size}]", {second}: "f32[{size}]"',
        f"""
        wide = ptir.broadcast_to(b, shape=(S, {size}))
        c = ptir.sub(a, wide)
        m = ptir.reduce_sum(c, axes=(1,))
        """,
        "m",
    )
    return [render(region).canonical for region in grouping.regions]


def test_names_and_sizes_do_not_change_the_text() -> None:
    assert texts(640, "a", "b") == texts(768, "a", "b")
    other = grouped(
        'q: "f32[700]", p: "f32[3,700]"',
        """
        z = ptir.broadcast_to(q, shape=(3, 700))
        y = ptir.sub(p, z)
        x = ptir.reduce_sum(y, axes=(1,))
        """,
        "x",
    )
    assert [render(region).canonical for region in other.regions] == texts(640, "a", "b")


VIEWS: dict[str, tuple[View, str, dict[str, Any], Shape | None, Any]] = {
    "split": (View.contiguous((S, 6)), "reshape", {"shape": (S, 2, 3)}, (6, 3, 1), 0),
    "merge": (View.contiguous((S, 2, T)), "reshape", {"shape": (S * 2, T)}, (T, 1), 0),
    "regroup": (View.contiguous((4, 6)), "reshape", {"shape": (3, 8)}, (8, 1), 0),
    "ones": (View.contiguous((S, 1, 4)), "reshape", {"shape": (1, S * 4)}, (0, 1), 0),
    "empty": (View.contiguous((0, 3)), "reshape", {"shape": (3, 0, 7)}, None, 0),
    "transpose": (View.contiguous((S, 4)), "transpose", {"perm": (1, 0)}, (1, 4), 0),
    "across": (View((4, S), (1, 4)), "reshape", {"shape": (4 * S,)}, None, None),
    "within": (View((4, S), (1, 4)), "reshape", {"shape": (2, 2, S)}, (2, 1, 4), 0),
    "spread": (View.contiguous((S, 1)), "broadcast_to", {"shape": (2, S, 5)}, (0, 1, 0), 0),
    "slice": (
        View.contiguous((S, 8)),
        "slice",
        {"starts": (S - 1, 2), "sizes": (1, 3), "strides": (1, 2)},
        (0, 2),
        S * 8 - 6,
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_move(name: str) -> None:
    view, op, attrs, strides, offset = VIEWS[name]
    moved = view.moved_by(OPS[op], attrs)
    if offset is None:
        assert moved is None
        return
    assert moved is not None
    assert str(moved.offset) == str(offset)
    if strides is not None:
        assert str(moved.strides) == str(strides)
