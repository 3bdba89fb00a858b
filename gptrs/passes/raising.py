"""Idiom recognition: composites written out in primitives become one composite instruction.

Runs before `legalize`, so that a backend can claim the composite. For each entry of `RAISABLE` the
instructions near its core ops are tried as roots, last one first; each proposed spelling is traced
at the types found (`idioms.patterns`) and compared with the program (`idioms.matcher`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from gptrs.errors import PtirError
from gptrs.ir.composites import Composite
from gptrs.ir.dims import same_shape
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.ops.elementwise import cast as convert
from gptrs.ir.ops.shape import broadcast_to, reshape, transpose
from gptrs.ir.program import Attrs, Instruction, Operation, Program, Value
from gptrs.ir.rewrite import Fuel
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import si64
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.base import Context
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.idioms.bindings import Match, Moved
from gptrs.passes.idioms.candidates import Bound, Proposal, Site
from gptrs.passes.idioms.matcher import Matcher
from gptrs.passes.idioms.patterns import Hole, cleaned, patterns
from gptrs.passes.legalize import inlined
from gptrs.passes.raisable import RAISABLE, Raisable

_RAISABLE = frozenset(raisable.op for raisable in RAISABLE)
_INNER = frozenset[Operation]().union(*(raisable.cores for raisable in RAISABLE))
_FARTHEST = 8  # instructions from a core to the result of a spelling
_MOVING = frozenset([broadcast_to, reshape, transpose])


def raise_composites(program: Program, context: Context) -> Program:
    """Replace spellings of the composites in `RAISABLE` by one instruction where the target claims
    it.

    A spelling without a kernel of the target stays as written, and so does a spelling most of whose
    intermediate values have other uses.
    """
    if context.fuel.empty or not any(_may_have(program, each) for each in RAISABLE):
        return program
    # Clean-up for the search is no rewrite of its own: each raise spends fuel.
    quiet = replace(context, fuel=Fuel())
    work = _Work(cleaned(inlined(program, lambda i: _stays(i, context)), quiet), context)
    for raisable in RAISABLE:
        work.sweep(raisable)
    return work.result() if work.any_claimed else program


def _may_have(program: Program, raisable: Raisable) -> bool:
    return any(_is_core(instruction, raisable) for instruction in program.body)


def _is_core(instruction: Instruction, raisable: Raisable) -> bool:
    return instruction.op in raisable.cores and instruction.results[0].type.dtype.is_float


def _computes(instruction: Instruction) -> bool:
    return instruction.op not in _MOVING and instruction.results[0].type.dtype.is_float


def _is_foreign(instruction: Instruction) -> bool:
    """Whether an instruction is a composite that occurs in no spelling."""
    return instruction.op not in _INNER and isinstance(instruction.op, Composite)


def _is_raisable(instruction: Instruction) -> bool:
    return instruction.op in _RAISABLE


def _stays(instruction: Instruction, context: Context) -> bool:
    """Whether an instruction is not decomposed for the search: a raisable, claimed or chosen
    one."""
    if not isinstance(instruction.op, Composite) or _is_raisable(instruction):
        return True
    chosen = context.choose is not None and context.choose(instruction) is not None
    return chosen or context.claims(instruction)


@dataclass(frozen=True)
class _Raised:
    """A recognised composite: the instructions that compute the value of its spelling."""

    body: tuple[Instruction, ...]
    result: Value
    claimed: bool


class _Work:
    """A program and the composites recognised in it so far, by the value that they compute.

    Composites that the target does not claim take part while larger ones are looked for, which may
    contain them; they are not in the result.
    """

    def __init__(self, base: Program, context: Context) -> None:
        self._base = base
        self._context = context
        self._found: dict[Value, _Raised] = {}
        self._own = {result for instruction in base.body for result in instruction.results}
        self._graph = _Graph(eliminate_dead_code(base, context))

    @property
    def any_claimed(self) -> bool:
        return any(raised.claimed for raised in self._found.values())

    def result(self) -> Program:
        """The program with the claimed composites."""
        return self._applied(everything=False)

    def _applied(self, *, everything: bool) -> Program:
        renamed: dict[Value, Value] = {}
        body: list[Instruction] = []
        for instruction in self._base.body:
            body.append(instruction.reading(renamed))
            value = instruction.results[0]
            raised = self._found.get(value)
            if raised is None:
                continue
            if everything or raised.claimed:
                body += [inner.reading(renamed) for inner in raised.body]
                renamed[value] = raised.result
            else:
                renamed[raised.result] = value
        program = self._base.with_body(body, [renamed.get(r, r) for r in self._base.results])
        return eliminate_dead_code(program, self._context)

    def sweep(self, raisable: Raisable) -> None:
        """Look for one composite at all roots, from the last instruction to the first."""
        if not _may_have(self._graph.program, raisable):
            return
        taken: set[Instruction] = set()
        for root in reversed(self._graph.after_cores(raisable)):
            if root in taken or len(root.results) != 1 or root.result not in self._own:
                continue
            taken.update(self._raise(root, raisable, self._graph))
        if taken:
            self._graph = _Graph(self._applied(everything=True))

    def _raise(self, root: Instruction, raisable: Raisable, graph: _Graph) -> Iterable[Instruction]:
        """Raise the spelling with the result of ``root``, if there is one. Returns its
        instructions."""
        site = Site(root, graph.makers)
        for proposal in raisable.propose(site):
            bound = self._match(proposal, site)
            raised = bound and self._build(root, raisable, *bound)
            if not bound or not raised:
                continue
            interior = graph.between(root, bound[0])
            if graph.is_wasted(root, interior):
                continue
            if raised.claimed and not self._context.fuel.spend(f"raise {raisable.name}"):
                return ()
            self._found[root.result] = raised
            return interior
        return ()

    def _match(self, proposal: Proposal, site: Site) -> tuple[Bound, Attrs] | None:
        """The operands and attributes of the composite, if the proposal matches at ``site``."""
        precise = self._context.precise
        if precise and not proposal.exact:
            return None
        for pattern in patterns(
            proposal.function, proposal.operands, proposal.attrs, _is_raisable, self._context
        ):
            match = Matcher(pattern, site.makers, precise=precise).match(site.root.result)
            if match is None:
                continue
            bound: Bound = [p and match.params.get(p) for p in pattern.params]
            attrs = _filled(proposal.attrs, match)
            finished = proposal.finish(bound, attrs) if proposal.finish else (bound, attrs)
            if finished is not None:
                return finished
        return None

    def _build(
        self, root: Instruction, raisable: Raisable, operands: Bound, attrs: Attrs
    ) -> _Raised | None:
        recorder = Recorder("raise", where=root.where)
        target = root.result.type
        try:
            with interpreter(recorder):
                result = raisable.op(*(o and _moved(o, recorder) for o in operands), **attrs)
                if not same_shape(result.shape, target.shape):
                    result = reshape(result, shape=target.shape)
        except PtirError:
            return None
        if result.type != target:
            return None
        made = next(i for i in recorder.body if i.op is raisable.op)
        return _Raised(
            tuple(recorder.body), cast("Value", result.value), self._context.claims(made)
        )


def _filled(attrs: Attrs, match: Match) -> Attrs:
    """The attributes with the holes replaced by the numbers of the program."""
    filled: Attrs = {}
    for name, value in attrs.items():
        if not isinstance(value, Hole):
            filled[name] = value
        elif name in match.holes:
            filled[name] = match.holes[name]
    return filled


def _moved(operand: Moved, recorder: Recorder) -> Tensor:
    tensor = Tensor.of_value(operand.value, recorder)
    for op, argument in operand.moves:
        if op is transpose:
            tensor = transpose(tensor, perm=cast("tuple[int, ...]", argument))
        else:
            tensor = reshape(tensor, shape=argument)
    if operand.plus is not None:
        tensor = convert(tensor, dtype=si64) + operand.plus
    if operand.rows is not None:
        tensor = broadcast_to(tensor, shape=(operand.rows,))
    return tensor


class _Graph:
    """Use-def chains of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._results = frozenset(program.results)
        self.makers: dict[Value, Instruction] = {}
        self._readers: dict[Value, list[Instruction]] = {}
        fixed: set[Value] = {p for p in program.params if p.role == "parameter"}
        self._moving: set[Instruction] = set()  # instructions that depend on more than parameters
        for instruction in program.body:
            self.makers.update(dict.fromkeys(instruction.results, instruction))
            for value in instruction.values():
                self._readers.setdefault(value, []).append(instruction)
            if fixed.issuperset(instruction.values()):
                fixed.update(instruction.results)
            else:
                self._moving.add(instruction)

    def after_cores(self, raisable: Raisable) -> Sequence[Instruction]:
        """The instructions near a core of ``raisable`` that depend on it, in order.

        Instructions that depend on parameters alone are left out: they run once and need no kernel.
        """
        near = {i for i in self.program.body if _is_core(i, raisable)}
        edge = near
        for _ in range(_FARTHEST):
            through = (i for i in edge if not _is_foreign(i))
            edge = {r for i in through for v in i.results for r in self._readers.get(v, ())} - near
            near = near | edge
        return [i for i in self.program.body if i in near and i in self._moving]

    def between(self, root: Instruction, operands: Bound) -> set[Instruction]:
        """The instructions that compute ``root`` from ``operands``."""
        ends = {operand.value for operand in operands if operand is not None}
        found = {root}
        left = [root]
        while left:
            for value in left.pop().values():
                maker = self.makers.get(value)
                if value not in ends and maker is not None and maker not in found:
                    found.add(maker)
                    left.append(maker)
        return found

    def is_wasted(self, root: Instruction, interior: set[Instruction]) -> bool:
        """Whether more than half of ``interior`` has to be computed for other uses anyway.

        Positions and masks do not count: layers share them, and they are little work.
        """
        needed: set[Instruction] = set()
        left = [i for i in interior if i is not root and self._is_read_outside(i, interior)]
        while left:
            instruction = left.pop()
            if instruction not in needed and instruction in interior:
                needed.add(instruction)
                left += [self.makers[v] for v in instruction.values() if v in self.makers]
        computing = [i for i in interior if i is not root and _computes(i)]
        return 2 * sum(i in needed for i in computing) > len(computing)

    def _is_read_outside(self, instruction: Instruction, interior: set[Instruction]) -> bool:
        return any(
            value in self._results or any(r not in interior for r in self._readers.get(value, ()))
            for value in instruction.results
        )
