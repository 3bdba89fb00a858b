"""Code generation of loops over elements whose inner loop is a scan or a while_loop.

Input: an `ElementLoop`; output: the source of a kernel. The parallel unit is a block of elements:

    def while_loop(x0, ..., out0, ..., words, status, first, last):
        count = iterations: the numbers of the state alone, by the condition
        for unit in range(first, last):
            state0[t], ... = the initial state of the block
            while done < count:
                for it in range(steps):
                    numbers of the state that elements depend on
                    for t in block:
                        state0[t], ... = the next state of an element
                done += steps
                the state is what it was before: done = count - (count - done) % steps
            out0[...] = state0[t]
        the last unit has no elements: it writes the numbers of the state

Where iterations read no elements of xs and write none of ys, a block is short and lies in
registers: its length is constant (a tail is filled up with copies of the first element), so that
LLVM unrolls its loops. Other blocks lie in the L1 cache, and xs and ys are read and written along
rows.

States of a block that repeat, bit by bit, go on doing so if the elements depend on nothing that
moves: an orbit that converged, or left its bounds under a mask, ends the iterations of its block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from gptrs.backends.faer import scalars
from gptrs.backends.faer.control_source import ControlSource
from gptrs.backends.faer.element_types import POINTERS
from gptrs.backends.faer.expression_writer import ExpressionWriter, Scope
from gptrs.backends.faer.interchange import ElementLoop, is_number
from gptrs.backends.views import Apply, Load, Reduce, walk
from gptrs.ir.dims import DimLike, product, same
from gptrs.ir.program import Value
from gptrs.ir.types import DType
from gptrs.kernels.compiler.parallel_loop import NJIT, wrapped

_VECTORS = 4  # of each part of the state: latencies overlap, and the registers suffice
_STREAMED = 2048  # bytes of a part of the state where xs or ys are read by rows
_CYCLE = 8  # iterations between comparisons of the state
_STRIP = 256  # iterations between looks at the budget
_BUDGET = 1 << 26  # operations between polls for signals, some 20 ms


class InterchangeWriter(ExpressionWriter):
    """Writes the kernel of one loop."""

    def __init__(self, loop: ElementLoop, vector_bits: int, *, precise: bool) -> None:
        super().__init__(loop.nest, precise=precise)
        self._loop = loop
        self._indices = self._row.indices if len(loop.nest.rows) != 1 else ("row",)
        self._arrays = {v: f"x{n}" for n, v in enumerate(_distinct(loop.instruction.values()))}
        self._outputs = [f"out{n}" for n in range(len(loop.instruction.results))]
        self._parts = [k for k in range(loop.state_count) if not self._is_number(k)]
        self._counted = [k for k in range(loop.state_count) if self._is_number(k)]
        widest = max(self._state(k).type.dtype.bits for k in self._parts) if self._parts else 32
        in_registers = _VECTORS * vector_bits // max(widest, 32)
        self._block = _STREAMED * 8 // max(widest, 32) if loop.streams else in_registers
        self._gathered: dict[int, str] = {}  # captured elements of a block
        self._gather = Scope(("e",), 3)
        self._unit: list[str] = []  # of a unit, before its elements
        self._fixed: dict[int, str] = {}  # captured numbers, by their value number
        self._locals: list[str] = []
        self._letter = "u"
        self._position = "it"

    def _is_number(self, k: int) -> bool:
        return is_number(self._state(k).type)

    def _state(self, k: int) -> Value:
        return self._loop.body.results[k]

    def write(self) -> ControlSource:
        """The source of the kernel."""
        nest = self._loop.nest
        counting = self._count()
        numbers = self._numbers_last()
        iterations = self._iterations()
        blocks = (nest.inner[-1] + (self._block - 1)) // self._block
        extent = product((*nest.rows, blocks)) + 1
        units = self.words.size(extent - 1, "units")
        head = [*self.head, f"    budget = {_BUDGET}", *self._locals, *counting]
        unit = [f"    for unit in range(first, min(last, {units})):", *self._place(blocks)]
        lines = [*head, *unit, *self.rows, *self._unit, *iterations]
        lines += [f"    if last > {units}:", *(numbers or ["        pass"])]
        return self._source("\n".join([*self._names(), *lines]) + "\n", extent)

    def _source(self, body: str, extent: DimLike) -> ControlSource:
        words = self.words.values
        arrays = [(n, POINTERS[v.type.dtype.name]) for v, n in self._arrays.items()]
        results = zip(self._outputs, self._loop.instruction.results, strict=True)
        arrays += [(name, POINTERS[r.type.dtype.name]) for name, r in results]
        scalar = [(n, "float64" if isinstance(w, float) else "int64") for n, w in words.items()]
        given = ", ".join(f"{n}: {k}" for n, k in (*arrays, *scalar, ("status", "int64")))
        functions = "".join(f"{NJIT}\n{self.functions[n]}\n\n" for n in sorted(self.functions))
        digest = hashlib.sha256(f"{functions}{given}\n{body}".encode()).hexdigest()
        name = f"{self._loop.instruction.op.name}_of_elements_{digest[:12]}"
        head = wrapped(f"{given}, first, last")
        regions = [*self._loop.instruction.regions()]
        length = self._loop.length
        return ControlSource(
            name,
            f"{functions}{NJIT}\ndef {name}({head}):\n{body}",
            tuple(self._arrays),
            tuple(words.values()),
            sum(len(region.body) for region in regions),
            extent,
            product(self._loop.nest.output.shape)
            * (_STRIP if length is None else length)
            * self._operations,
        )

    @property
    def _operations(self) -> int:
        """The operations of an iteration at an element."""
        values = self._loop.elements.values()
        return max(1, len({p for e in values for p in walk(e) if isinstance(p, Apply)}))

    def _names(self) -> list[str]:
        values = [*self._arrays, *self._loop.instruction.results]
        names = [*self._arrays.values(), *self._outputs]
        return [
            f"    # {n}: {v.type.dtype.name}, rank {v.type.rank}"
            for n, v in zip(names, values, strict=True)
        ]

    # The numbers of the state, which do not depend on elements.

    def _count(self) -> list[str]:
        """Lines that find ``count``, the iterations."""
        if self._loop.length is not None:
            return [f"    count = {self.words.size(self._loop.length, 'length')}"]
        assert self._loop.condition is not None
        lines = [*self._numbers_first(self._counted, 1), "    count = 0", "    while True:"]
        self._row = Scope(self._indices, 2)
        test = self._number(self._loop.condition.results[0])
        self._row.add(f"if not ({test}):")
        self._row.add("    break")
        self._row.lines += [*self._advance(self._counted), "        count += 1"]
        return [*lines, *self._row.lines, *_poll(f"budget - {2 * len(self._loop.numbers) + 4}", 2)]

    def _numbers_last(self) -> list[str]:
        """Lines of the last unit: the last numbers of the state, and the ys that are numbers."""
        loop, results = self._loop, self._loop.body.results
        if loop.length is None:
            return self._numbers_out("u")
        ys = [k for k in range(loop.state_count, len(results)) if is_number(results[k].type)]
        if not self._counted and not ys:
            return []
        lines = [*self._numbers_first(self._counted, 2), "        for it in range(count):"]
        self._row = Scope(self._indices, 3)
        self._place_of_iteration()
        for k in ys:
            name = self._name(self._row, "y", self._number(results[k]), results[k].type.dtype)
            at = f"{self._outputs[k]}[{self._position}]"
            self._row.add(f"{at} = {scalars.stored(results[k].type.dtype, name)}")
        self._row.lines += self._advance(self._counted)
        lines += [*self._row.lines, *_poll(f"budget - {2 * len(loop.numbers) + 4}", 3)]
        return [*lines, *self._numbers_out("u")]

    def _place_of_iteration(self) -> None:
        """The place along xs and ys, which may go backwards."""
        if self._loop.instruction.attrs.get("reverse"):
            self._position = "place"
            self._row.add("place = count - 1 - it")

    def _numbers_first(self, wanted: Iterable[int], depth: int) -> list[str]:
        """The initial numbers of the state."""
        lines: list[str] = []
        for k in wanted:
            array, dtype = self._arrays[self._given("state", k)], self._state(k).type.dtype
            lines.append(
                "    " * depth + f"{self._letter}{k} = {scalars.loaded(dtype, f'{array}[0]')}"
            )
        return lines

    def _numbers_out(self, letter: str) -> list[str]:
        lines: list[str] = []
        for k in self._counted:
            text = scalars.stored(self._state(k).type.dtype, f"{letter}{k}")
            lines.append(f"        {self._outputs[k]}[0] = {text}")
        return lines

    def _number(self, value: Value) -> str:
        return self._emit(self._loop.numbers[value], self._row)

    def _advance(self, wanted: Sequence[int]) -> list[str]:
        """Write the next numbers of the state in the scope of an iteration; what ends it."""
        texts = [self._rounded(self._state(k)) for k in wanted]
        moved = [(k, t) for k, t in zip(wanted, texts, strict=True) if t != f"{self._letter}{k}"]
        if not moved:
            return []
        names = ", ".join(f"{self._letter}{k}" for k, _ in moved)
        return ["    " * self._row.depth + f"{names} = {', '.join(text for _, text in moved)}"]

    def _rounded(self, value: Value) -> str:
        """A number as it is after a store: narrow floats are rounded once an iteration."""
        text, dtype = self._number(value), value.type.dtype
        stays = text in {f"{self._letter}{k}" for k in self._counted}
        if stays or dtype.compute is dtype or not dtype.is_float:
            return text
        name = text if text.isidentifier() else self._name(self._row, "wide", text, dtype.compute)
        return self._name(self._row, "rounded", scalars.rounded(dtype, name), dtype.compute)

    def _given(self, group: str, number: int) -> Value:
        roles = self._loop.roles.values()
        return next(r.operand for r in roles if (r.group, r.number) == (group, number))

    # Elements.

    def _place(self, blocks: DimLike) -> list[str]:
        """The lines that say which elements a unit has."""
        rows, inner = self._loop.nest.rows, self._loop.nest.inner
        place, lines = "unit", list[str]()
        if rows:
            n = self.words.size(blocks, "blocks")
            first = self._indices[0] if len(rows) == 1 else "rest"
            lines.append(f"        {first} = unit // {n}")
            place = f"unit % {n}"
            for axis in range(len(rows) - 1, 0, -1):
                extent = self.words.size(rows[axis], "n")
                lines.append(f"        {self._indices[axis]} = rest % {extent}")
                lines.append(f"        {'i0' if axis == 1 else 'rest'} = rest // {extent}")
        lines.append(f"        begin = ({place}) * {self._block}")
        lines.append(
            f"        live = min({self._block}, {self.words.size(inner[-1], 'n')} - begin)"
        )
        return lines

    @property
    def _all(self) -> str:
        """The elements that an iteration computes of a block."""
        return f"for t in range({'live' if self._loop.streams else self._block}):"

    def _iterations(self) -> list[str]:
        """The lines of a unit after its place."""
        loop, nest = self._loop, self._loop.nest
        self._letter = "v"
        varying = [k for k in self._counted if k in loop.varying]
        steps = _CYCLE if loop.repeats else _STRIP
        body = self._iteration(varying, 4)
        first = self._numbers_first(varying, 2)
        load, store = [["            e = begin + t"] for _ in range(2)]
        for k in self._parts:
            names = ("state",) if loop.streams else ("state", "first", "kept")
            dtype = self._state(k).type.dtype
            self._locals += [_local(f"{name}{k}", dtype, self._block) for name in names]
            array = self._arrays[self._given("state", k)]
            at = self._at(array, nest.output, self._gather)
            load.append(f"            {self._staged(k)}[t] = {array}[{at}]")
            at = self._at(self._outputs[k], nest.output, self._gather)
            store.append(f"            {self._outputs[k]}[{at}] = {self._staged(k)}[t]")
        lines = ["        for t in range(live):", *load, *self._gather.lines]
        lines += [*self._filled(), *self._moved("state", "first"), *first]
        lines += ["        done = 0", "        while done < count:"]
        lines.append(f"            steps = min({steps}, count - done)")
        if loop.repeats:
            lines += [f"    {line}" for line in self._moved("kept", "state")]
        lines += ["            for it in range(done, done + steps):", *body]
        lines.append("            done += steps")
        lines += self._compared() if loop.repeats else []
        lines += _poll(f"budget - steps * {self._block * self._operations}", 3)
        return [*lines, *self._moved("first", "state"), "        for t in range(live):", *store]

    def _iteration(self, varying: Sequence[int], depth: int) -> list[str]:
        loop = self._loop
        self._row, inner = Scope(self._indices, depth), Scope(("e",), depth + 1)
        self._position = "it"
        self._place_of_iteration()
        inner.add("e = begin + t")
        stores: list[str] = []
        for k, result in enumerate(loop.body.results):
            if is_number(result.type):
                continue
            dtype = result.type.dtype
            text = self._emit(loop.elements[result], inner)
            if not text.isidentifier():
                text = self._name(inner, "value", text, dtype.compute)
            target = f"state{k}[t]"
            if k >= loop.state_count:
                size = self.words.size(product(result.type.shape), "size")
                at = self._at(self._outputs[k], loop.nest.output, inner)
                target = f"{self._outputs[k]}[{self._position} * {size} + {at}]"
            stores.append(f"{target} = {scalars.stored(dtype, text)}")
        for store in stores:
            inner.add(store)
        ending = self._advance(varying)
        return [*self._row.lines, "    " * depth + self._all, *inner.lines, *ending]

    def _load(self, part: Load, scope: Scope) -> str:
        loop, value, dtype = self._loop, part.value, part.dtype
        role = loop.roles.get(value)
        if role is None:
            made = loop.numbers if is_number(value.type) else loop.elements
            return self._emit(made[value], scope)
        if role.group == "state" and is_number(value.type):
            return f"{self._letter}{role.number}"
        if role.group == "captured" and not (loop.streams and self._values.varies(part)):
            return self._captured(part, self._arrays[role.operand])
        if role.group == "state":
            text = f"state{role.number}[t]"
        else:
            array = self._arrays[role.operand]
            at = self._at(array, part.view, scope)
            if role.group == "xs":
                size = self.words.size(product(value.type.shape), "size")
                at = f"{self._position} * {size} + {at}"
            text = f"{array}[{at}]"
        return self._name(scope, "a", scalars.loaded(dtype, text), dtype.compute)

    def _captured(self, part: Load, array: str) -> str:
        """The name of what does not depend on the iteration: an element of a block, or a number."""
        number, dtype = self._values.number(part), part.dtype
        if self._values.varies(part):
            if number not in self._gathered:
                name = self._gathered[number] = self._fresh("captured")
                self._locals.append(_local(name, dtype, self._block))
                at = self._at(array, part.view, self._gather)
                self._gather.add(f"{name}[t] = {array}[{at}]")
            return scalars.loaded(dtype, f"{self._gathered[number]}[t]")
        if number not in self._fixed:
            name = self._fixed[number] = self._fresh("a")
            text = scalars.loaded(dtype, f"{array}[{self._at(array, part.view, self._row)}]")
            by_row = any(not same(s, 0) for s in part.view.strides)
            lines, margin = (self._unit, "        ") if by_row else (self.head, "    ")
            lines.append(f"{margin}{name} = {text}")
        return self._fixed[number]

    def _base(self, name: str, terms: list[str]) -> str:
        if not terms:
            return ""
        base = self._fresh(f"{name}_at_")
        by_row = any(term.split(" * ")[0] in self._indices for term in terms)
        lines, margin = (self.rows, "        ") if by_row else (self.head, "    ")
        lines.append(f"{margin}{base} = {' + '.join(terms)}")
        return base

    def _reduce(self, part: Reduce) -> str:
        raise AssertionError("no loop over elements has a reduction")

    # The memory of a block.

    def _staged(self, k: int) -> str:
        """Where a part of the state is before and after the iterations: LLVM keeps arrays in
        registers whose indices are all constants."""
        return f"state{k}" if self._loop.streams else f"first{k}"

    def _filled(self) -> list[str]:
        """A tail is filled up to the length of a block."""
        if self._loop.streams:
            return []
        names = [*map(self._staged, self._parts), *self._gathered.values()]
        lines = [f"            {name}[t] = {name}[0]" for name in names]
        return [f"        for t in range(live, {self._block}):", *lines]

    def _moved(self, target: str, source: str) -> list[str]:
        """A copy of the state of a block; none if it stays where it is."""
        if self._loop.streams:
            return []
        lines = [f"            {target}{k}[t] = {source}{k}[t]" for k in self._parts]
        return [f"        {self._all}", *lines]

    def _compared(self) -> list[str]:
        """What ends the iterations when the state is what it was."""
        tests: list[str] = []
        for k in self._parts:
            pair = f"state{k}[t]", f"kept{k}[t]"
            is_complex = self._state(k).type.dtype.is_complex
            sides = (".real", ".imag") if is_complex else ("",)
            tests += [f"differs({', '.join(f'{x}{side}' for x in pair)})" for side in sides]
        return [
            "            changed = False",
            f"            {self._all}",
            f"                changed = changed | {' | '.join(tests)}",
            "            if not changed:",
            "                done = count - (count - done) % steps",
        ]


def _local(name: str, dtype: DType, count: int) -> str:
    return f"    {name} = local_{POINTERS[dtype.name]}({count})"


def _poll(left: str, depth: int) -> list[str]:
    """Look for signals when the operations since the last time exceed the budget."""
    lines = [f"budget = {left}", "if budget < 0:", f"    budget = {_BUDGET}"]
    lines += ["    if interrupted(status) or failed(status):", "        return"]
    return ["    " * depth + line for line in lines]


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))
