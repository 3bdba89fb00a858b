"""Rendering of a region: the source of its kernel.

The source is one Numba function, after the scalar rules of users' ops that it calls. Its parameters
are the arrays that the region reads, its results, then words (sizes, offsets, strides other than 0
and 1 of the innermost loops, and numbers of the program, in the order of their first use), and the
range of rows or elements that a call computes. Those before the range are the kernel's argument
block.

Two regions whose sources differ in nothing but the names of arrays share a kernel: sizes and most
numbers are words, and `Rendered.canonical`, the cache key of a kernel, calls the arrays ``x0``,
``x1`` and so on. In `Rendered.source` they have the names of the user's program.
"""

from __future__ import annotations

import builtins
import hashlib
import keyword
import re
import struct
from collections.abc import Callable, Sequence

from gptrs.backends.faer import scalars
from gptrs.backends.faer.blocked_writer import BlockedWriter, prefers_blocks
from gptrs.backends.faer.loop_writer import LoopWriter
from gptrs.backends.faer.neighbour_writer import NeighbourWriter, reads_neighbours
from gptrs.backends.faer.short_row_writer import ShortRowWriter, is_of_short_rows, reductions_of
from gptrs.backends.faer.short_sum_writer import ShortSumWriter, is_short_sum
from gptrs.backends.faer.tile_writer import TileWriter
from gptrs.backends.regions import Region
from gptrs.backends.vectorization import prefers_tiles
from gptrs.ir.dims import DimLike
from gptrs.ir.program import Param, Value
from gptrs.kernels.compiler.parallel_loop import NJIT, LoopSource, wrapped
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property

NO_RESULT = 1
"""The code of a kernel in which an element has no result."""


@dataclass(frozen=True)
class Rendered:
    """The kernel source of a region, and the contents of its argument block."""

    name: str
    functions: str
    """The scalar rules that it calls."""
    parameters: str
    body: str
    """The parameters and the body of its function, with canonical names."""
    inputs: tuple[Value, ...]
    results: tuple[Value, ...]
    words: tuple[DimLike | float, ...]
    word_names: tuple[str, ...]
    extent: DimLike
    fails: bool = False
    """Whether its last word is the address of the status."""
    grain: int = 1
    """The items of the extent that it computes together, if a chunk has as many."""

    @property
    def canonical(self) -> str:
        """The source with names for arrays that depend on nothing but their order."""
        return f"{self.functions}{NJIT}\ndef {self.name}({self.parameters}):\n{self.body}"

    @cached_property
    def source(self) -> str:
        """A kernel for `gptrs.kernels.compiler.compile.compile_source`."""
        names = _array_names(self.inputs, f"{self.parameters}\n{self.body}")
        head = wrapped(_with_names(self.parameters, names))
        body = _with_names(self.body, names)
        return f"{self.functions}{NJIT}\ndef {self.name}({head}):\n{body}"

    @property
    def loop(self) -> LoopSource:
        """The kernel's source under its name."""
        return LoopSource(self.name, self.source)

    def module(self, size: Callable[[DimLike], int], chunks: int = 1) -> str:
        """The source as a module that runs, whose parallel function has the sizes of a plan, and
        its number of chunks, for defaults."""
        words = zip(self.word_names, self.words, strict=True)
        values = {n: w if isinstance(w, float) else size(w) for n, w in words}
        values |= {"status": 0} if self.fails else {}
        return self.loop.module(values | {"extent": size(self.extent), "chunks": chunks})


def as_word(value: DimLike | float) -> DimLike:
    """The word in the argument block for one of `Rendered.words`: of a float, its bits as f64."""
    return struct.unpack("q", struct.pack("d", value))[0] if isinstance(value, float) else value


def writer_of(region: Region, *, shared: bool = False) -> type[LoopWriter]:
    """What writes the loops of a region."""
    if region.others:
        return LoopWriter
    if is_short_sum(region):
        return ShortSumWriter
    short = not shared and is_of_short_rows(region)
    if short and reductions_of(region):
        return ShortRowWriter
    if prefers_tiles(region):
        return TileWriter
    if prefers_blocks(region):
        return BlockedWriter
    if reads_neighbours(region):
        return NeighbourWriter
    return ShortRowWriter if short else LoopWriter


def render(
    region: Region,
    *,
    precise: bool = False,
    shared: bool = False,
    inlined: bool = False,
    overwritten: Value | None = None,
) -> Rendered:
    """The source of the kernel that computes ``region``. A ``precise`` kernel rounds narrow floats
    after each op; a ``shared`` one has no numbers of the program in its text. Of one that is
    ``inlined`` in another kernel LLVM does not know whether arrays overlap: it checks each loop.
    An ``overwritten`` operand is in the memory of the result, and no input."""
    kind = writer_of(region, shared=shared)
    kind = LoopWriter if inlined and kind is NeighbourWriter else kind
    writer = kind(region, precise=precise, shared=shared)
    writer.overwritten = overwritten
    writer.write()
    arrays = [*writer.inputs, *region.results]
    names = [*writer.inputs.values(), *writer.out_names]
    kinds = [scalars.POINTERS[v.type.dtype.name] for v in arrays]
    words = writer.words.values
    types = ["float64" if isinstance(w, float) else "int64" for w in words.values()]
    parameters = zip([*names, *words], [*kinds, *types], strict=True)
    notes = [f"    # {n}: {note}" for n, note in zip(names, writer.notes, strict=True)]
    loop = [f"    {writer.loop}", *writer.rows, *writer.lines]
    lines, status = [*writer.head, *loop], list[str]()
    if writer.fails:  # one test for all elements, so that their loop is vectorised
        status = ["status: int64"]  # what all have in common is tested before it, if there are any
        lines = ["    failing = False", *lines, "    if failing and first < last:"]
        lines.append(f"        report_failure(status, {NO_RESULT})")
    body = "\n".join([*notes, *lines]) + "\n"
    named = [f"{name}: {kind}" for name, kind in parameters]
    given = ", ".join([*named, *status, "first", "last"])
    functions = "".join(f"{NJIT}\n{writer.functions[n]}\n\n" for n in sorted(writer.functions))
    digest = hashlib.sha256(f"{functions}{given}\n{body}".encode()).hexdigest()
    return Rendered(
        f"{'_'.join(writer.title)}_{digest[:12]}",
        functions,
        given,
        body,
        tuple(writer.inputs),
        region.results,
        tuple(words.values()),
        tuple(words),
        writer.extent,
        writer.fails,
        writer.grain,
    )


_ARRAY = re.compile(r"\bx(\d+)(_at_\d+)?\b")


def _with_names(text: str, names: Sequence[str]) -> str:
    """The text with these names for ``x0``, ``x1`` and so on."""
    return _ARRAY.sub(lambda found: names[int(found[1])] + (found[2] or ""), text)


def _array_names(inputs: Sequence[Value], text: str) -> list[str]:
    """The names of the program's arguments, or of the ops that made the arrays, each once."""
    taken = set(re.findall(r"\w+", text))
    names: list[str] = []
    for place, value in enumerate(inputs):
        name = value.name if isinstance(value, Param) else _of_origin(value.origin)
        name = re.sub(r"\W+", "_", name, flags=re.ASCII)
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            name = f"x{place}"
        while ((name in taken or name in _RESERVED) and name != f"x{place}") or "_at_" in name:
            name = f"{name}_".replace("_at_", "_")
        taken.add(name)
        names.append(name)
    return names


def _of_origin(origin: str) -> str:
    """The op in the words that say where a value comes from."""
    found = re.match(r"result of (\w+)", origin)
    return found[1] if found else ""


_RESERVED = frozenset(
    [*dir(builtins), *keyword.softkwlist, "math", "njit", "prange", "chunk", "chunks", "extent"]
)
