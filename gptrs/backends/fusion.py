"""Loop fusion: the partition of a program into regions, each one loop nest.

Input: a program after all passes. Output: `FusedProgram`, the program as regions (one loop nest
each, see `gptrs.backends.regions`) and the instructions that no loop can compute, in program order.
A backend makes a kernel of each region.

An instruction that works by element, reduces or moves elements is inlined into the loops of its
uses. A value is stored, and so is the result of a region of its own, when

- it is a result of the program, or an instruction outside of regions reads it;
- several regions would compute it, and it is not cheap (`fusible.is_cheap`, `MOST_CHEAP`
  instructions at most), nor spread by a few operations from much smaller arrays;
- a reshape of it cannot be expressed as strides over the arrays that it is made of;
- it is a reduction whose rows are not those of the other reductions in a region, or a reduction to
  one row that a loop over elements reads;
- a region would have too many instructions (`inlining.MOST_MEMBERS`) or expressions (`MOST_PARTS`);
- inlining it would compute elements again and again: no region takes more than
  `Machine.recomputation` times the scalar operations that its instructions take op by op, nor that
  of their cost (an exp costs more than an addition), whatever the sizes. What a row keeps in the
  memory of its result (`gptrs.backends.kept_values`) is computed once.

A reduction of few elements is written out as operations on each (`inlining.MOST_UNROLLED`), so that
it has no rows of its own.

Storing a value changes the regions that other values are inlined into, so the rules are applied
until no further value has to be stored. Then `gptrs.backends.recomputation` inlines those that are
computed again in less time than they are stored and read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product as combinations
from typing import TypeAlias

from gptrs.backends.fusible import can_fuse, cost, is_cheap
from gptrs.backends.inlining import Inlined, Inliner
from gptrs.backends.machine import MACHINE
from gptrs.backends.operation_counts import operations, operations_alone
from gptrs.backends.recomputation import inlined_again
from gptrs.backends.regions import Region
from gptrs.ir.dims import Dim, DimLike, size_at
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.shape import broadcast_to
from gptrs.ir.program import Instruction, Program, Value
from gptrs.lazy_dataclass import dataclass

MOST_CHEAP = 16
_COPIES = frozenset([OpKind.VIEW, OpKind.FILL])
_LARGE = 1000  # a large size of a symbol
_MOST_SYMBOLS = 4  # with more symbols, each is tried large while the others are 1


@dataclass(frozen=True)
class FusedProgram:
    """A program as regions and single instructions, in the order in which they run."""

    program: Program
    steps: tuple[Region | Instruction, ...]
    inlined: Mapping[Value, Inlined]
    """The results of the regions, as expressions over their own axes."""

    @property
    def regions(self) -> tuple[Region, ...]:
        return tuple(step for step in self.steps if isinstance(step, Region))

    @property
    def outside(self) -> tuple[Instruction, ...]:
        """The instructions that are in no region."""
        return tuple(step for step in self.steps if isinstance(step, Instruction))


def fuse(
    program: Program,
    fusible: Callable[[Instruction], bool] | None = None,
    *,
    alone: bool = False,
) -> FusedProgram:
    """The regions of ``program``, by the rules at the head of this file.

    ``fusible`` selects the instructions that a region of the backend can compute (`can_fuse` by
    default). With ``alone`` each instruction with arithmetic has a region of its own.
    """
    fused = {i.result: i for i in program.body if (fusible or can_fuse)(i)}
    stored = {v for i in program.body for v in i.values() if i.results[0] not in fused}
    stored.update(program.results)
    needed = frozenset(stored)
    if alone:
        stored.update(v for v, i in fused.items() if i.op.kind not in _COPIES)
    sizes = _sizes(program)
    inliner = Inliner(fused, stored)
    counts: dict[Region, Mapping[Value, DimLike]] = {}
    while True:
        _store_shared(fused, stored, sizes[0])
        if wanted := inliner.build():
            stored |= wanted
            continue
        regions = {v: inliner.region(v) for v in fused if v in stored}
        counts = {r: counts.get(r) or operations(r) for r in regions.values()}
        if not (wanted := _recomputed(counts, inliner.made, fused, sizes)):
            break
        stored |= wanted
    if not alone:
        inliner = inlined_again(inliner, needed, counts, sizes)
        regions = {v: inliner.region(v) for v in fused if v in inliner.stored}
    steps: list[Region | Instruction] = []
    for instruction in program.body:
        if instruction.results[0] not in fused:
            steps.append(instruction)
        elif instruction.result in regions:
            steps.append(regions[instruction.result])
    inlined = {value: inliner.made[value] for value in regions}
    return FusedProgram(program, tuple(steps), inlined)


def _store_shared(
    fused: Mapping[Value, Instruction], stored: set[Value], large: Mapping[str, int]
) -> None:
    """Store values that several regions would compute. Traverses backwards and collects for each
    value the stored values that it is computed for."""
    cheap = _cheap_values(fused, stored) | _spread_values(fused, stored, large)
    roots: dict[Value, set[Value]] = {}
    for value, instruction in reversed(list(fused.items())):
        uses = roots.get(value, set())
        widens = instruction.op is broadcast_to  # then its operand takes less memory
        if len(uses) > 1 and value not in cheap and not widens:
            stored.add(value)
        if value in stored:
            uses = {value}
        for operand in instruction.values():
            roots.setdefault(operand, set()).update(uses)


def _cheap_values(fused: Mapping[Value, Instruction], stored: set[Value]) -> set[Value]:
    members: dict[Value, frozenset[Instruction]] = {}
    for value, instruction in fused.items():
        inlined = [v for v in instruction.values() if v in fused and v not in stored]
        if is_cheap(instruction) and all(v in members for v in inlined):
            found = frozenset([instruction]).union(*(members[v] for v in inlined))
            if len(found) <= MOST_CHEAP:
                members[value] = found
    return set(members)


def _spread_values(
    fused: Mapping[Value, Instruction], stored: set[Value], large: Mapping[str, int]
) -> set[Value]:
    """Values that are computed in a few operations from much smaller arrays, such as differences of
    all pairs: writing such a value and reading it again takes more time than that, even in caches.
    """
    made: dict[Value, tuple[int, frozenset[Value]]] = {}  # operations, and the arrays read
    found: set[Value] = set()
    for value, instruction in fused.items():
        if instruction.op.kind is OpKind.REDUCTION:
            continue
        taken, arrays = cost(instruction) if instruction.op.elementwise else 0, frozenset[Value]()
        for operand in instruction.values():
            below = made.get(operand) if operand not in stored else None
            taken += below[0] if below else 0
            arrays |= below[1] if below else frozenset([operand])
        read = sum(size_at(array.type.size, large) for array in arrays)
        if taken <= MACHINE.spread and all(v in stored or v not in fused for v in arrays):
            made[value] = taken, arrays
            if MACHINE.spread * read <= size_at(value.type.size, large):
                found.add(value)
    return found


def _recomputed(
    operations: Mapping[Region, Mapping[Value, DimLike]],
    made: Mapping[Value, Inlined],
    fused: Mapping[Value, Instruction],
    sizes: Sequence[Mapping[str, int]],
) -> set[Value]:
    """The values to store because scalar operations are too many: in one region, or in total."""
    regions, counts = list(operations), list(operations.values())
    alone = {value: operations_alone(fused[value]) for count in counts for value in count}
    found: set[Value] = set()
    for at in sizes:
        need = {value: size_at(n, at) for value, n in alone.items()}
        works = [{value: size_at(n, at) for value, n in count.items()} for count in counts]
        for region, work in zip(regions, works, strict=True):
            costs = {value: cost(fused[value]) for value in work}
            if _is_too_much(work, need, dict.fromkeys(work, 1)) or _is_too_much(work, need, costs):
                worst = _worst(region.result, work, need, costs, made)
                found.update(() if worst is None else (worst,))
        if not found and sum(sum(w.values()) for w in works) > MACHINE.recomputation * sum(
            need.values()
        ):
            found.update(_computed_twice(regions, works))
        if found:
            break
    return found


Counts: TypeAlias = Mapping[Value, int]


def _is_too_much(work: Counts, need: Counts, costs: Counts) -> bool:
    taken = sum(count * costs[value] for value, count in work.items())
    return taken > MACHINE.recomputation * sum(need[value] * costs[value] for value in work)


def _worst(
    result: Value, work: Counts, need: Counts, costs: Counts, made: Mapping[Value, Inlined]
) -> Value | None:
    """Of the values that a region computes more often than needed, the most expensive one:
    repetitions times the cost of the operations up to it that are repeated as often."""
    again = {v: work[v] / max(need[v], 1) - 1 for v in work if work[v] > need[v]}
    again.pop(result, None)

    def saved(value: Value) -> float:
        members = [member.results[0] for member in made[value].members]
        return again[value] * sum(need[m] * costs[m] for m in members if m in again)

    return max(again, key=saved, default=None)  # the last of equals: `work` begins with the result


def _computed_twice(
    regions: Iterable[Region], works: Iterable[Mapping[Value, int]]
) -> Iterator[Value]:
    """For each region, the outermost of its values that an earlier region computes too."""
    first: dict[Value, Region] = {}
    for region, work in zip(regions, works, strict=True):
        for value in work:
            if first.setdefault(value, region) is not region:
                yield value
                break


def _sizes(program: Program) -> list[Mapping[str, int]]:
    """Sample sizes of the symbols: small and large ones in all combinations."""
    values = [v for i in program.body for v in i.results]
    dims = {n for v in (*program.params, *values) for n in v.type.shape if isinstance(n, Dim)}
    symbols = sorted({name for n in dims for name in n.symbols()})
    if len(symbols) > _MOST_SYMBOLS:
        large = [dict.fromkeys(symbols, 1) | {symbol: _LARGE} for symbol in symbols]
        return [dict.fromkeys(symbols, _LARGE), *large]
    several = combinations((_LARGE, 1), repeat=len(symbols))
    return [dict(zip(symbols, chosen, strict=True)) for chosen in several]
