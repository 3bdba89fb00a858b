"""Source lines for the steps of a region: fused regions, small products, checks.

The fused regions (`gptrs.backends.fusion`) are functions in the same source, written by `render` as
for kernels of their own, so that the bits are those of running step by step. A region writes its
result where the next state or a y of it is to be; one that updates a block of the state writes the
block alone, as both buffers have the rest. Small products are calls between the regions
(`gptrs.backends.faer.loop_products`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from gptrs.backends.faer.control_lines import Array, ControlLines, UnwritableError
from gptrs.backends.faer.loop_products import LoopProduct, loop_product, open_products
from gptrs.backends.faer.matched_calls import CallMatcher
from gptrs.backends.faer.region_updates import RegionUpdate, fold_updates
from gptrs.backends.faer.render import render
from gptrs.backends.fusion import fuse
from gptrs.backends.operation_counts import operations
from gptrs.backends.regions import Region
from gptrs.ir.dims import size_at
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.effects import check
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Instruction, Program, Value
from gptrs.kernels.checks import CHECKED
from gptrs.kernels.gemm.inline_product import ProductSizes

_MOST_REGIONS = 48  # each takes some 20 ms to compile
_MOST_WORK = 1 << 16  # operations of a region: beyond, threads are worth a step
_MOST_PACKED = 1 << 20  # bytes of a packed matrix


class StepWriter(ControlLines, ABC):
    """Writes the steps of the bodies and conditions of one instruction."""

    def __init__(
        self, fusible: Callable[[Instruction], bool], vector_bits: int, *, precise: bool
    ) -> None:
        super().__init__()
        self._fusible, self._vector_bits, self._precise = fusible, vector_bits, precise
        self._inputs: dict[Value, Array] = {}
        self._functions: dict[str, str] = {}  # regions and the scalar rules that they call
        self._regions = 0
        self._checks: list[Instruction] = []
        self._instructions = 0
        self._operations = 0  # of one iteration of each loop
        self._packed: dict[tuple[str, ProductSizes], Array] = {}  # what iterations only read
        self._before: list[str] = []  # lines before all iterations
        self._following: dict[str, str] = {}  # by a part of a state, the next one
        self._partial: set[str] = set()  # next states of which iterations write blocks alone

    @abstractmethod
    def _control(
        self, instruction: Instruction, env: Mapping[Value, Array], outputs: Sequence[Array]
    ) -> None:
        """Write an instruction that has regions."""

    def _program(
        self, program: Program, given: Sequence[Array], wanted: Mapping[Value, Array] | None = None
    ) -> list[Array]:
        """Write the steps of a region; the arrays of its results. A loop writes a ``wanted`` result
        to its place."""
        env: dict[Value, Array] = dict(zip(program.params, given, strict=True))
        opened = open_products(program)
        if opened is None:
            raise UnwritableError
        renamed = zip(program.results, opened.results, strict=True)
        places = {new: wanted[old] for old, new in renamed if wanted and old in wanted}
        for step in fold_updates(fuse(opened, self._fusible), CallMatcher()):
            if isinstance(step, Region):
                env[step.result] = self._region(step, env, places.get(step.result))
            elif isinstance(step, RegionUpdate):
                env[step.region.result] = self._update(step, env, places)
            elif step.op.control:
                made = [self._local(r.type, step.op.name) for r in step.results]
                self._instructions += 1
                self._control(step, env, made)
                env.update(zip(step.results, made, strict=True))
            elif step.op is dot_general:
                env[step.result] = self._product(step, env, places.get(step.result))
            elif step.op is check:
                env[step.result] = self._check(step, env)
            elif step.op is not constant:  # one that is read as an array has no buffer
                raise UnwritableError
        if any(value not in env for value in opened.results):
            raise UnwritableError
        return [env[value] for value in opened.results]

    def _check(self, step: Instruction, env: Mapping[Value, Array]) -> Array:
        """Write a check; the array of its token."""
        holds = step.operands[0]
        if not isinstance(holds, Value):
            raise UnwritableError
        self._checks.append(step)
        self._add(f"if {self._array(holds, env).text}[0] == 0:")
        self._add(f"    report_failure(status, {CHECKED + len(self._checks) - 1})")
        self._add("    return")
        return self._array(holds, env)

    def _update(
        self, step: RegionUpdate, env: Mapping[Value, Array], places: Mapping[Value, Array]
    ) -> Array:
        region = step.region
        result = places.get(region.result) or self._local(region.result.type, "value")
        base = self._array(step.base, env)
        if self._following.get(base.text) == result.text and not result.is_small:
            self._partial.add(result.text)
        else:
            self._copy(result, base)
        return self._region(region, env, result)

    def _region(
        self, region: Region, env: Mapping[Value, Array], place: Array | None = None
    ) -> Array:
        if any(value not in env for value in region.inputs):
            raise UnwritableError
        self._instructions += len(region.members)
        if region.copies is not None:
            return Array(env[region.copies].text, region.result.type)
        self._regions += 1
        work = _work(region)
        if self._regions > _MOST_REGIONS or work > _MOST_WORK:
            raise UnwritableError
        self._operations += work
        rendered = render(region, precise=self._precise, inlined=True)
        self._functions[rendered.name] = f"{rendered.canonical}\n\n"
        result = place or self._local(region.result.type, "value")
        words = [self._word(word, "w") for word in rendered.words]
        arrays = [env[value].text for value in rendered.inputs]
        extent = self._word(rendered.extent, "extent")
        status = ["status"] if rendered.fails else []
        arguments = ", ".join([*arrays, result.text, *words, *status, "0", extent])
        self._add(f"{rendered.name}({arguments})")
        if rendered.fails:  # a loop might not end with what it has now
            self._add("if failed(status):")
            self._add("    return")
        return result

    def _product(
        self, core: Instruction, env: Mapping[Value, Array], place: Array | None = None
    ) -> Array:
        product = loop_product(core, self._vector_bits)
        if product is None:
            raise UnwritableError
        self._instructions += 1
        self._operations += product.operations
        a, b = (self._array(value, env) for value in (product.a, product.b))
        result = place or self._local(core.result.type, "product")
        if product.packed_from is not None:
            b = self._pack(product, b)
        given = ", ".join([a.text, b.text, result.text, *map(str, product.sizes)])
        self._add(f"product({given})")
        return result

    def _pack(self, product: LoopProduct, matrix: Array) -> Array:
        """A matrix as [depth, columns]; one that is an input, before all iterations."""
        sizes = product.sizes
        key = matrix.text, sizes
        if key in self._packed:
            return self._packed[key]
        fixed = any(matrix.text == array.text for array in self._inputs.values())
        type = product.b.type.with_shape((sizes.depth, sizes.columns))
        packed = self._local(type, "packed", _MOST_PACKED)
        at = f"{packed.text}[i * {sizes.columns} + j]"
        lines = [
            f"for j in range({sizes.columns}):",
            f"    for i in range({sizes.depth}):",
            f"        {at} = {matrix.text}[j * {product.packed_from} + i]",
        ]
        if fixed:
            self._packed[key] = packed
            self._before += ["    " + line for line in lines]
        else:
            for line in lines:
                self._add(line)
        return packed


def _work(region: Region) -> int:
    """The operations of a region; with unknown sizes, too many."""
    counts = [region.result.type.size, *operations(region).values()]
    if not all(isinstance(count, int) for count in counts):
        return _MOST_WORK + 1
    return sum(size_at(count, {}) for count in counts)
