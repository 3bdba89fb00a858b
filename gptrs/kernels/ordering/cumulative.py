"""Cumulative sums, products, maxima and minima along an axis, in order.

    columns contiguous:                       the axis contiguous:
    for i in count                            for 4 lines at a time (then 1)
        for j in tile        # vectors            for i in count
            s[j] = s[j] + x[i, j]                     s = s + x[line, i]     # 4 chains
            result[i, j] = s[j]                       result[line, i] = s

The layout is that of `gptrs.kernels.ordering.lines`. Each sum is the one before plus the next
element (or their product, maximum, minimum), in the type of the op's arithmetic, and is rounded to
the dtype as it is stored: the bits of NumPy. An addition takes 2 to 4 cycles that the next one of
its line waits for; four lines fill them. Where the order changes no bit (integers, maxima and
minima), a line alone is combined by four elements that wait once for those before:

    a, ab, c, cd  →  s + a, s + ab, s + abc, s + abcd

Contiguous lines of floats, as many as a vector has lanes, and those of integers are combined in
vectors (`gptrs.kernels.ordering.running`).
"""

from __future__ import annotations

from collections.abc import Callable

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.ordering.lines import LINE_ARGUMENTS, OFFSET, TILE, unpacked
from gptrs.kernels.ordering.running import Operation
from gptrs.lazy_dataclass import dataclass

LINES = 4
"""Lines that are combined beside each other where the axis is contiguous."""

_JOINED: dict[Operation, str] = {
    "sum": "{0} + {1}",
    "product": "{0} * {1}",
    "maximum": "max({0}, {1})",
    "minimum": "min({0}, {1})",
}


@dataclass(frozen=True)
class Element:
    """A dtype in kernel source: pointers to what is read, to what is stored and to numbers that are
    combined, the type of such a number, and texts that convert them."""

    name: str
    source: str
    pointer: str
    numbers: str
    number: str
    read: Callable[[str], str]
    stored: Callable[[str], str]
    plain: bool
    """Whether numbers are stored as they are, and integers that are read need at most more bits."""
    truths: bool = False
    """Whether truth values are read, as 0 and 1."""

    def has_any_order(self, operation: Operation) -> bool:
        """Whether numbers may be combined in any order with the same bits."""
        return operation in ("maximum", "minimum") or "int" in self.number

    @property
    def bits(self) -> int:
        """The width of a number."""
        return int(self.number.lstrip("uintfloa"))

    def in_vectors(self, operation: Operation) -> bool:
        """Whether contiguous lines are combined in vectors: where an instruction combines two."""
        if not self.plain or self.number.startswith("float"):
            return self.plain
        least, most = {"sum": (8, 64), "product": (16, 32)}.get(operation, (8, 32))
        return least <= self.bits <= most

    def joined(self, operation: Operation, total: str, x: str) -> str:
        """A number combined with the next one. Of floats, NaN wins, and -0 is less than 0."""
        text = _JOINED[operation]
        if self.number.startswith("float") and operation in ("maximum", "minimum"):
            text = f"{operation}({{0}}, {{1}})"
        return f"{self.number}({text.format(total, x)})"


def cumulative_kernel(isa: Isa, operation: Operation, element: Element) -> Kernel:
    """result[i] = x[0] + ... + x[i] along lines of elements; or their product and the like.

    Arguments: `LINE_ARGUMENTS`; extent: the axes times ``tiles``.
    """
    name = f"cumulative_{operation}_{element.name}"
    vectors = ""
    if element.in_vectors(operation):
        vectors = _vectors(operation, element, isa.vector_bits)
    return compile_source(_source(name, operation, element, vectors), name)


def _vectors(operation: Operation, e: Element, vector_bits: int) -> str:
    """The branch for contiguous lines that are combined in vectors."""
    if not e.number.startswith("float"):
        call = f"running_{operation}_line(source, target, count, {vector_bits}, {int(e.truths)})"
        return f"""
        elif x_step == 1 and result_step == 1:
            for column in range(width):
                source = shifted(x, at + column * x_column)
                target = shifted(result, to + column * result_column)
                {call}"""
    lanes = vector_bits // e.bits
    call = f"(source, x_column, target, result_column, count, {vector_bits})"
    return f"""
        elif x_step == 1 and result_step == 1 and min(width, count) >= {lanes}:
            for column in range(0, width, {lanes}):
                column = min(column, width - {lanes})
                source = shifted(x, at + column * x_column)
                target = shifted(result, to + column * result_column)
                running_{operation}_lines{call}"""


def _source(name: str, operation: Operation, e: Element, vectors: str) -> str:
    def next_of(total: str, x: str) -> str:
        return e.joined(operation, total, e.read(x))

    def lines(count: int) -> str:
        """The loop over ``count`` lines that begin at ``source`` and ``target``."""
        first = [
            f"s{k} = {e.read(f'x[source + {k} * x_column]')}\n"
            f"result[target + {k} * result_column] = {e.stored(f's{k}')}"
            for k in range(count)
        ]
        more = [
            f"s{k} = {next_of(f's{k}', f'x[source + {k} * x_column + i * x_step]')}\n"
            f"result[target + {k} * result_column + i * result_step] = {e.stored(f's{k}')}"
            for k in range(count)
        ]
        body = "\n".join(more).replace("\n", "\n                    ")
        start = "\n".join(first).replace("\n", "\n                ")
        return f"""
                source = at + column * x_column
                target = to + column * result_column
                {start}
                for i in range(1, count):
                    {body}"""

    def run() -> str:
        """The loop over one line, of adjacent elements, by four."""
        a, b, c, d = (e.read(f"x[source + i{k}]") for k in ("", " + 1", " + 2", " + 3"))
        totals = [e.stored(e.joined(operation, "s", part)) for part in ("a", "ab", "abc", "abcd")]
        stores = "\n".join(
            f"                    result[target + i + {k}] = {total}"
            for k, total in enumerate(totals)
        )
        return f"""
                source = at + column * x_column
                target = to + column * result_column
                s = {e.number}({e.read("x[source]")})
                result[target] = {e.stored("s")}
                for i in range(1, count - 3, 4):
                    a = {e.number}({a})
                    ab = {e.joined(operation, "a", b)}
                    c = {e.number}({c})
                    cd = {e.joined(operation, "c", d)}
                    abc = {e.joined(operation, "ab", "c")}
                    abcd = {e.joined(operation, "ab", "cd")}
{stores}
                    s = {e.joined(operation, "s", "abcd")}
                for i in range(count - (count - 1) % 4, count):
                    s = {next_of("s", "x[source + i]")}
                    result[target + i] = {e.stored("s")}"""

    def columns(x_column: str, result_column: str) -> str:
        x, to = f"x[source{x_column}]", f"result[target{result_column}]"
        return f"""
            source, target = at, to
            for j in range(width):
                s = {e.number}({e.read(x)})
                sums[j] = s
                {to} = {e.stored("s")}
            for i in range(1, count):
                source, target = at + i * x_step, to + i * result_step
                for j in range(width):
                    s = {next_of("sums[j]", x)}
                    sums[j] = s
                    {to} = {e.stored("s")}"""

    by_four = ""
    if e.has_any_order(operation) and not (vectors and "int" in e.number):
        by_four = f"            for column in range(alone, width):{run()}\n"
    return f"""{OFFSET}
def {name}(arguments, first, last):
{unpacked(LINE_ARGUMENTS)}
    x, result = {e.source}(x), {e.pointer}(result)
    sums = local_{e.numbers}({TILE})
    for item in range(first, last):
        outer = item // tiles
        begin = (item - outer * tiles) * tile
        width = min(tile, columns - begin)
        at = offset(triples, axes, outer, 1) + begin * x_column
        to = offset(triples, axes, outer, 2) + begin * result_column
        if x_column == 1 and result_column == 1:{columns(" + j", " + j")}{vectors}
        else:
            whole = width // {LINES} * {LINES}
            for column in range(0, whole, {LINES}):{lines(LINES)}
            alone = {"whole if x_step == 1 and result_step == 1 else width" if by_four else "width"}
            for column in range(whole, alone):{lines(1)}
{by_four}"""
