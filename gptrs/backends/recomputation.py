"""Recomputation instead of storage: stored values that each of their uses computes in less time.

Input: the regions of `gptrs.backends.fusion` by its rules. Output: the same, where a value that
loops without reductions store and read is computed by each of these loops instead, if

- their time falls by `gptrs.backends.region_time`: where symbols are large, by at least
  `Machine.least_gain`;
- all regions take at most `Machine.recomputation` times the operations of the program op by op.

So the Laplacian of a stencil is stored, and the fluxes between its elements are computed twice.
Values are tried from the last to the first, each once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial

from gptrs.backends.inlining import MOST_MEMBERS, MOST_PARTS, Inliner
from gptrs.backends.machine import MACHINE
from gptrs.backends.operation_counts import operations, operations_alone
from gptrs.backends.region_time import RegionTime, loads
from gptrs.backends.regions import Region
from gptrs.ir.dims import DimLike, size_at
from gptrs.ir.program import Value

Counts = Mapping[Region, Mapping[Value, DimLike]]
Sizes = Sequence[Mapping[str, int]]


def inlined_again(inliner: Inliner, needed: Set[Value], counts: Counts, sizes: Sizes) -> Inliner:
    """``inliner``, or one that stores fewer values: those that are ``needed`` stay.

    ``counts`` are the operations of its regions.
    """
    search = _Search(inliner, counts, sizes)
    for value in reversed(search.results):
        if value not in needed:
            search.attempt(value)
    return search.inliner


class _Search:
    """The best inliner so far, and what its regions read and take."""

    def __init__(self, inliner: Inliner, counts: Counts, sizes: Sizes) -> None:
        self.inliner, self._sizes = inliner, sizes
        self._order = {value: place for place, value in enumerate(inliner.fused)}
        self.results = [value for value in inliner.fused if value in inliner.stored]
        self._inputs = {value: inliner.region(value).inputs for value in self.results}
        self._readers: dict[Value, dict[Value, None]] = {value: {} for value in self.results}
        for result, values in self._inputs.items():
            for value in values:
                self._readers.setdefault(value, {})[result] = None
        self._counts = dict(counts)
        self._times: dict[Region, RegionTime] = {}
        alone = {v: operations_alone(inliner.fused[v]) for count in counts.values() for v in count}
        most = [sum(size_at(n, at) for n in alone.values()) for at in sizes]
        taken = self._operations(counts)
        self._left = [MACHINE.recomputation * n - t for n, t in zip(most, taken, strict=True)]

    def attempt(self, value: Value) -> None:
        """Inline a stored value if that is faster."""
        readers = list(self._readers[value])
        if not readers or not self._may_inline(value, readers):
            return
        before = [self.inliner.region(v) for v in (value, *readers)]
        taken = self._operations(before)
        if not self._fits(taken, self._least(value, before[1:])):
            return
        trial = self.inliner.inlining(value)
        if trial.build(self._computed_by(readers)):
            return
        after = [trial.region(v) for v in readers]
        then = self._operations(after)
        times = zip(self._time(before), self._time(after), strict=True)
        gains = [old - new for old, new in times]
        if not self._fits(taken, then) or gains[0] < MACHINE.least_gain or min(gains) < 0:
            return
        self.inliner = trial
        changed = zip(self._left, taken, then, strict=True)
        self._left = [left + old - new for left, old, new in changed]
        for source in self._inputs[value]:
            self._readers[source] |= dict.fromkeys(readers)
            del self._readers[source][value]

    def _may_inline(self, value: Value, readers: Sequence[Value]) -> bool:
        """Whether neither the value nor what reads it has reductions or would become too long."""
        made = self.inliner.made[value]
        into = [self.inliner.made[reader] for reader in readers]
        return not any(
            one.rows
            or len(one.members | made.members) > MOST_MEMBERS
            or len(one.parts) + len(made.parts) > MOST_PARTS
            for one in (made, *into)
        )

    def _computed_by(self, results: Sequence[Value]) -> list[Value]:
        """The values that the regions of ``results`` compute, in program order."""
        members = (member for result in results for member in self.inliner.made[result].members)
        return sorted({member.result for member in members}, key=self._order.__getitem__)

    def _fits(self, taken: Sequence[int], operations: Sequence[int]) -> bool:
        """Whether so many operations instead of those that are ``taken`` are not too many."""
        changed = zip(self._left, taken, operations, strict=True)
        return all(left + old - new >= 0 for left, old, new in changed)

    def _least(self, value: Value, readers: Sequence[Region]) -> list[int]:
        """At least so many operations with the value inlined: its own one at each of its uses."""
        counts = [n for region in readers for n in self._counts[region].values()]
        if self.inliner.fused[value].op.elementwise:
            counts += [n for r in readers for load, n in loads(r) if load.value is value]
        return [sum(size_at(n, at) for n in counts) for at in self._sizes]

    def _operations(self, regions: Sequence[Region] | Counts) -> list[int]:
        """The scalar operations of regions at each of the sizes."""
        for region in regions:
            if region not in self._counts:
                self._counts[region] = operations(region)
        counts = [n for region in regions for n in self._counts[region].values()]
        return [sum(size_at(n, at) for n in counts) for at in self._sizes]

    def _time(self, regions: Sequence[Region]) -> list[float]:
        """The time of regions at each of the sizes."""
        for region in regions:
            if region not in self._times:
                self._times[region] = RegionTime(region, self._counts[region])
        times = [self._times[region] for region in regions]
        return [sum(t.at(partial(size_at, sizes=at)) for t in times) for at in self._sizes]
