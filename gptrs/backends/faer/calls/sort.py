"""Calls that order elements along an axis: sort and top_k, of which only the results that are read
are computed."""

from __future__ import annotations

from gptrs.backends.faer.calls.base import PIECES, Address, Binder, Call
from gptrs.backends.faer.calls.lines import lines_of, tiles_of
from gptrs.backends.faer.element_types import KEYS
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.sort import top_k
from gptrs.ir.program import Instruction, Value
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.ordering.selection import selection_room
from gptrs.kernels.ordering.sort import SORT_ARGUMENTS, Sorting, sort_kernel
from gptrs.lazy_dataclass import dataclass

_ELEMENT_NS = 4.0
_BESIDE = 16  # columns of a tile: a cache line of f32
_TILE_BYTES = 2**18  # of keys, which are to stay in L2
_PACKED = 2**32  # positions that fit beside a key of 32 bits


@dataclass(frozen=True, eq=False)
class Sort(Call):
    """sort and top_k: the elements along an axis in order, or their positions, or both."""

    target = "gpt_rs.faer.sort.v1"

    x: Source
    axis: int
    kept: DimLike
    descending: bool
    values: bool
    order: bool
    partial: bool

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Sort | None:
        x = core.operands[0]
        if not isinstance(x, Value):
            return None
        members, attrs = Members(), core.attrs
        source = members.read_strided(graph, x)
        members.add(core)
        values, order = (graph.is_read(result) for result in core.results)
        results = [r for r, read in zip(core.results, (values, order), strict=True) if read]
        if not results:
            return None
        axis: int = attrs["axis"]
        whole = core.op is not top_k
        return cls(
            results[0],
            tuple(members.found),
            source,
            axis,
            x.type.shape[axis] if whole else attrs["k"],
            attrs["descending" if whole else "largest"],
            values,
            order,
            partial=not whole,
            more_results=tuple(results[1:]),
        )

    def _selects(self, count: int, kept: int) -> bool:
        """Whether few of the keys of a line are held at a time."""
        return self.partial and selection_room(count, kept) < count

    def _sorting(self, isa: Isa, *, wide: bool = False, selects: bool = False) -> Sorting:
        key = KEYS[self.x.value.type.dtype.name]
        if not (self.order or self.partial):
            return Sorting(key, "alone", isa.quicksort_bits)
        # The upper halves of most integers are equal.
        partial = selects or (self.partial and not self.x.value.type.dtype.is_float)
        halves = "halves" if isa.quicksort_bits and not partial else "paired"
        form = "packed" if key.bits == 32 else halves
        return Sorting(key, "paired" if wide else form, isa.quicksort_bits)

    def compile(self, isa: Isa) -> None:
        count, kept, ways = self.x.view.shape[self.axis], self.kept, {False, self.partial}
        if isinstance(count, int) and isinstance(kept, int):
            ways = {self._selects(count, kept)}
        for selects in ways:
            sort_kernel(self._sorting(isa, selects=selects))

    def bind(self, b: Binder) -> bool:
        lines = lines_of(b, self.x, self.axis, View.contiguous(self.result.type.shape))
        count, kept = lines.count, b.size(self.kept)
        if kept > count:
            return False  # an error, which the reference words
        if not kept * lines.number:
            return True
        selects = self._selects(count, kept)
        sorting = self._sorting(b.isa, wide=count >= _PACKED, selects=selects)
        room = selection_room(count, kept) if self.partial else count
        tile = 1
        if lines.steps[0] != 1 and lines.axes and lines.axes[-1].source == 1:
            tile = max(1, min(_BESIDE, _TILE_BYTES // sorting.scratch_bytes(0, room)))
        words, triples, items = tiles_of(lines, tile)
        slots = min(items, b.threads * PIECES) if b.threads > 1 else 1
        in_place = sorting.fits and tile == 1 and lines.steps[1] == 1
        slot_bytes = sorting.scratch_bytes(0 if in_place else tile, room)
        nothing: dict[str, int | Address] = dict.fromkeys(SORT_ARGUMENTS, 0)
        words = {name: words.get(name, 0) for name in nothing}
        words.update(x=b.address(self.x.value, self.x.view.offset))
        stored = ["values"] * self.values + ["order"] * self.order
        for name, result in zip(stored, self.results, strict=True):
            words[name] = b.address(result)
        words.update(scratch=b.scratch(slots * slot_bytes), slot_bytes=slot_bytes)
        words.update(slots=slots, items=items, kept=kept, room=room)
        words.update(flip=-self.descending, in_place=int(in_place))
        time = _ELEMENT_NS * count * lines.number
        b.step(sort_kernel(sorting), [*words.values(), *triples], slots, time)
        return True
