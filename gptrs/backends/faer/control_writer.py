"""Code generation of control flow: a scan, while_loop or cond as one Numba function.

Input: the instruction; output: the source of a kernel, the values that it reads, and its words. The
regions of its bodies and conditions (`gptrs.backends.fusion`) are functions in the same source,
written by `render` as for kernels of their own, so that the bits are those of running step by step:

    def scan(x0, ..., out0, ..., words, status, first, last):
        state = the initial state, in local arrays
        for n in range(length):
            region(state, x0 + n * size, ..., next)       one call for each region, inlined by LLVM
            out1 + n * size = ...                         ys
            state = next
        out0 = state

Values of an iteration with at most `MOST_ELEMENTS` elements are local arrays; LLVM keeps scalars in
registers. Larger ones are in scratch memory, `_MOST_BYTES` each, and a state of that kind in two
buffers that change places. A region writes its result where the next state or a y of it is to be;
one that updates a block of the state writes the block alone, as both buffers have the rest. Small
products are calls between the regions (`gptrs.backends.faer.loop_products`).

Whatever else a body contains, `UnwritableError` says that its loop is driven step by step
(`gptrs.backends.faer.control`). A loop polls for signals after `_BUDGET` operations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gptrs.backends.faer import scalars
from gptrs.backends.faer.control_source import ControlSource
from gptrs.backends.faer.loop_products import LoopProduct, loop_product, open_products
from gptrs.backends.faer.region_updates import RegionUpdate, fold_updates
from gptrs.backends.faer.render import render
from gptrs.backends.fusion import fuse
from gptrs.backends.operation_counts import operations
from gptrs.backends.regions import Region
from gptrs.ir.dims import Dim, DimLike, product, same, size_at
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.control import cond, while_loop
from gptrs.ir.ops.effects import check
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.types import Type
from gptrs.kernels.checks import CHECKED
from gptrs.kernels.compiler.parallel_loop import NJIT, wrapped
from gptrs.kernels.gemm.inline_product import ProductSizes

MOST_ELEMENTS = 64
_MOST_REGIONS = 48  # each takes some 20 ms to compile
_MOST_WORK = 1 << 16  # operations of a region: beyond, threads are worth a step
_MOST_BYTES = 1 << 16  # of a value, so that all of them stay in the cache
_MOST_PACKED = 1 << 20  # bytes of a packed matrix
_MOST_KNOWN = 64  # sizes up to this are in the text, for loops of known length
_STRIP = 1 << 12  # iterations of a scan between looks at the budget
_BUDGET = 1 << 26  # operations between polls, some 20 to 60 ms


class UnwritableError(Exception):
    """The loop needs more than regions over small arrays."""


@dataclass(frozen=True)
class Array:
    """The memory of a value in the source: a pointer's text and the element type."""

    text: str
    type: Type

    @property
    def size(self) -> int:
        """The number of elements."""
        return _size(self.type)

    @property
    def bytes(self) -> int:
        """What its elements take; negative where it is not known."""
        return self.size * self.type.dtype.numpy.itemsize

    @property
    def is_small(self) -> bool:
        """Whether it is an array on the stack."""
        return self.size <= MOST_ELEMENTS


class ControlWriter:
    """Writes the kernel of one instruction with regions."""

    def __init__(
        self, fusible: Callable[[Instruction], bool], vector_bits: int, *, precise: bool
    ) -> None:
        self._fusible, self._vector_bits, self._precise = fusible, vector_bits, precise
        self._inputs: dict[Value, Array] = {}
        self._words: dict[str, DimLike | float] = {}
        self._word_names: dict[object, str] = {}
        self._functions: dict[str, str] = {}  # regions and the scalar rules that they call
        self._regions = 0
        self._checks: list[Instruction] = []
        self._instructions = 0
        self._operations = 0  # of one iteration of each loop
        self._locals: list[str] = []
        self._scratch: list[Array] = []
        self._packed: dict[tuple[str, ProductSizes], Array] = {}  # what iterations only read
        self._before: list[str] = []  # lines before all iterations
        self._following: dict[str, str] = {}  # by a part of a state, the next one
        self._partial: set[str] = set()  # next states of which iterations write blocks alone
        self._lines: list[str] = []
        self._depth = 1
        self._counts: dict[str, int] = {}

    def write(self, instruction: Instruction) -> ControlSource:
        """The source for ``instruction``. Raises `UnwritableError`."""
        outputs = [Array(f"out{n}", r.type) for n, r in enumerate(instruction.results)]
        for value in dict.fromkeys(instruction.values()):
            if value.type.dtype.name not in scalars.POINTERS:
                raise UnwritableError
            self._inputs[value] = Array(f"x{len(self._inputs)}", value.type)
        self._control(instruction, self._inputs, outputs)
        return self._source(instruction, outputs)

    def _source(self, instruction: Instruction, outputs: Sequence[Array]) -> ControlSource:
        given = (*self._inputs.values(), *outputs, *self._scratch)
        arrays = [(a.text, _pointer(a.type)) for a in given]
        words = [
            (name, "float64" if isinstance(word, float) else "int64")
            for name, word in self._words.items()
        ]
        given = ", ".join(f"{n}: {k}" for n, k in (*arrays, *words, ("status", "int64")))
        notes = [f"    # {name}: {type}" for name, type in self._notes(outputs)]
        head = [*notes, f"    budget = {_BUDGET}", *self._locals, *self._before]
        body = "\n".join([*head, *self._lines]) + "\n"
        functions = "".join(self._functions.values())
        name = instruction.op.name
        digest = hashlib.sha256(f"{functions}{given}\n{body}".encode()).hexdigest()
        name = f"{name}_{digest[:12]}"
        head = wrapped(f"{given}, first, last")
        return ControlSource(
            name,
            f"{functions}{NJIT}\ndef {name}({head}):\n{body}",
            tuple(self._inputs),
            tuple(self._words.values()),
            self._instructions,
            scratch=tuple(array.bytes for array in self._scratch),
            checks=tuple(self._checks),
        )

    def _notes(self, outputs: Sequence[Array]) -> list[tuple[str, str]]:
        arrays = [*self._inputs.values(), *outputs]
        return [(a.text, f"{a.type.dtype.name}, rank {a.type.rank}") for a in arrays]

    # Instructions with regions. `env` has the arrays of the values that they may read.

    def _control(
        self, instruction: Instruction, env: Mapping[Value, Array], outputs: Sequence[Array]
    ) -> None:
        if instruction.op is cond:
            self._cond(instruction, env, outputs)
        elif instruction.op is while_loop:
            self._while(instruction, env, outputs)
        else:
            self._scan(instruction, env, outputs)

    def _group(
        self, instruction: Instruction, place: int, env: Mapping[Value, Array]
    ) -> list[Array]:
        """The arrays of a tuple of operands."""
        operands = instruction.operands[place] if place < len(instruction.operands) else ()
        found: list[Array] = []
        for operand in cast("tuple[Any, ...]", operands):
            if not isinstance(operand, Value):
                raise UnwritableError
            found.append(self._array(operand, env))
        return found

    def _cond(
        self, instruction: Instruction, env: Mapping[Value, Array], outputs: Sequence[Array]
    ) -> None:
        pred = instruction.operands[0]
        if not isinstance(pred, Value):
            raise UnwritableError
        given = self._group(instruction, 1, env)
        self._add(f"if {self._array(pred, env).text}[0] != 0:")
        self._branch(instruction.attrs["then"], given, outputs)
        self._add("else:")
        self._branch(instruction.attrs["otherwise"], given, outputs)

    def _branch(self, region: Program, given: Sequence[Array], outputs: Sequence[Array]) -> None:
        before = len(self._lines)
        self._depth += 1
        for target, result in zip(outputs, self._program(region, given), strict=True):
            self._copy(target, result)
        if len(self._lines) == before:
            self._add("pass")
        self._depth -= 1

    def _while(
        self, instruction: Instruction, env: Mapping[Value, Array], outputs: Sequence[Array]
    ) -> None:
        given, captured = self._group(instruction, 0, env), self._group(instruction, 1, env)
        state, following = self._state(given)
        place = len(self._lines)
        self._add("while True:")
        self._depth += 1
        before = self._operations
        (test,) = self._program(instruction.attrs["condition"], [*state, *captured])
        self._add(f"if {test.text}[0] == 0:")
        self._add("    break")
        body: Program = instruction.attrs["body"]
        self._body(body, [*state, *captured], state, following)
        self._poll(f"budget - {self._operations - before + 4}")
        self._depth -= 1
        self._keep_rest(place, given, following)
        for target, array in zip(outputs, state, strict=True):
            self._copy(target, array)

    def _scan(
        self, instruction: Instruction, env: Mapping[Value, Array], outputs: Sequence[Array]
    ) -> None:
        attrs = instruction.attrs
        given = self._group(instruction, 0, env)
        xs, captured = self._group(instruction, 1, env), self._group(instruction, 2, env)
        state, following = self._state(given)
        entry = len(self._lines)
        length = self._word(attrs["length"], "length", known=False)
        begin, end, n = self._fresh("begin"), self._fresh("end"), self._fresh("n")
        self._add(f"for {begin} in range(0, {length}, {_STRIP}):")
        self._depth += 1
        self._add(f"{end} = min({begin} + {_STRIP}, {length})")
        place = len(self._lines)
        self._add(f"for {n} in range({begin}, {end}):")
        self._depth += 1
        if attrs["reverse"]:
            self._add(f"at_{n} = {length} - 1 - {n}")
        at, before = f"at_{n}" if attrs["reverse"] else n, self._operations
        slices = [self._slice(array, at) for array in (*xs, *outputs[len(state) :])]
        items, ys = slices[: len(xs)], slices[len(xs) :]
        self._body(attrs["body"], [*state, *items, *captured], state, [*following, *ys])
        self._depth -= 1
        inner, self._lines = self._lines[place:], self._lines[:place]
        inner += ["    " * (self._depth + 1) + "pass"] if len(inner) == 1 else []
        self._poll(f"budget - ({end} - {begin}) * {self._operations - before + 4}")
        self._lines += inner
        self._depth -= 1
        self._keep_rest(entry, given, following)
        for target, array in zip(outputs, state, strict=False):
            self._copy(target, array)

    def _poll(self, left: str) -> None:
        """Poll for signals when the operations since the last time exceed the budget."""
        self._add(f"budget = {left}")
        self._add("if budget < 0:")
        self._add(f"    budget = {_BUDGET}")
        self._add("    if interrupted(status):")
        self._add("        return")

    def _state(self, given: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """The state of a loop, and where the next one is written."""
        state = [self._local(array.type, "state") for array in given]
        following = [a if a.is_small else self._local(a.type, "next") for a in state]
        for part, other, array in zip(state, following, given, strict=True):
            self._following[part.text] = other.text
            self._copy(part, array)
        return state, following

    def _keep_rest(self, place: int, given: Sequence[Array], following: Sequence[Array]) -> None:
        """Insert copies of the initial state at the line ``place``, for the buffers of which
        iterations write blocks alone."""
        rest, self._lines = self._lines[place:], self._lines[:place]
        for array, target in zip(given, following, strict=True):
            if target.text in self._partial:
                self._copy(target, array)
        self._lines += rest

    def _body(
        self,
        body: Program,
        given: Sequence[Array],
        state: Sequence[Array],
        targets: Sequence[Array],
    ) -> None:
        """Write an iteration; ``targets`` are where the next state and ys belong. Regions write
        large ones there."""
        wanted: dict[Value, Array] = {}
        for result, target in zip(body.results, targets, strict=True):
            if not target.is_small:
                wanted.setdefault(result, target)
        results = self._program(body, given, wanted)
        count = len(state)
        for target, result in zip(targets[count:], results[count:], strict=True):
            self._copy(target, result)
        self._advance(state, targets[:count], results[:count])

    def _advance(
        self, state: Sequence[Array], following: Sequence[Array], results: Sequence[Array]
    ) -> None:
        """The next state. Small results that are parts of the state now are copied first."""
        parts, moved = {array.text for array in state}, list[Array]()
        for target, result in zip(following, results, strict=True):
            if target.is_small and result.text in parts - {target.text}:
                kept = self._local(result.type, "kept")
                self._copy(kept, result)
                result = kept
            moved.append(result)
        for target, result in zip(following, moved, strict=True):
            self._copy(target, result)
        for part, other in zip(state, following, strict=True):
            if part.text != other.text:
                self._add(f"{part.text}, {other.text} = {other.text}, {part.text}")

    def _slice(self, array: Array, at: str) -> Array:
        """An element of ``array`` along its first axis."""
        element = array.type.with_shape(array.type.shape[1:])
        size = product(element.shape)
        text = at if same(size, 1) else f"{at} * {self._word(size, 'size')}"
        name = self._fresh("row")
        self._add(f"{name} = shifted({array.text}, {text})")
        return Array(name, element)

    # The instructions of a region.

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
        for step in fold_updates(fuse(opened, self._fusible)):
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
        rendered = render(region, precise=self._precise)
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

    # Arrays, words and lines.

    def _array(self, value: Value, env: Mapping[Value, Array]) -> Array:
        if value not in env:
            raise UnwritableError  # a constant array of a region
        return env[value]

    def _local(self, type: Type, word: str, most: int = _MOST_BYTES) -> Array:
        """An array on the stack or, if it is larger, in scratch memory."""
        if type.dtype.name not in scalars.POINTERS:
            raise UnwritableError
        array = Array(self._fresh(word), type)
        self._check_size(array, most)
        if array.is_small:
            self._locals.append(f"    {array.text} = local_{_pointer(type)}({array.size})")
        else:
            self._scratch.append(array)
        return array

    def _check_size(self, array: Array, most: int = _MOST_BYTES) -> None:
        if not 0 <= array.bytes <= most:
            raise UnwritableError

    def _copy(self, target: Array, source: Array) -> None:
        if target.text == source.text:
            return
        self._check_size(target)
        if target.size == 1:
            self._add(f"{target.text}[0] = {source.text}[0]")
        elif target.size:
            k = self._fresh("k")
            self._add(f"for {k} in range({target.size}):")
            self._add(f"    {target.text}[{k}] = {source.text}[{k}]")

    def _word(self, value: DimLike | float, letter: str, *, known: bool = True) -> str:
        """A word of the argument block, or the text of a small number."""
        if known and type(value) is int and abs(value) <= _MOST_KNOWN:
            return str(value)
        key = (letter, str(value) if isinstance(value, Dim) else (type(value), repr(value)))
        if key not in self._word_names:
            self._word_names[key] = self._fresh(letter)
            self._words[self._word_names[key]] = value
        return self._word_names[key]

    def _fresh(self, word: str) -> str:
        self._counts[word] = self._counts.get(word, -1) + 1
        return f"{word}_{self._counts[word]}"

    def _add(self, line: str) -> None:
        self._lines.append("    " * self._depth + line)


def _pointer(type: Type) -> str:
    return scalars.POINTERS[type.dtype.name]


def _size(type: Type) -> int:
    """The number of elements; -1 where it is not known."""
    size = type.size
    return size if isinstance(size, int) else -1


def _work(region: Region) -> int:
    """The operations of a region; with unknown sizes, too many."""
    counts = [region.result.type.size, *operations(region).values()]
    if not all(isinstance(count, int) for count in counts):
        return _MOST_WORK + 1
    return sum(size_at(count, {}) for count in counts)
