"""Code generation of control flow: a scan, while_loop or cond as one Numba function.

Input: the instruction; output: the source of a kernel, the values that it reads, and its words:

    def scan(x0, ..., out0, ..., words, status, first, last):
        state = the initial state, in local arrays
        for n in range(length):
            region(state, x0 + n * size, ..., next)       one call for each region, inlined by LLVM
            out1 + n * size = ...                         ys
            state = next
        out0 = state

A state in scratch memory has two buffers that change places. `control_lines` has the arrays, and
`control_steps` writes the steps of bodies and conditions.

Whatever else a body contains, `UnwritableError` says that its loop is driven step by step
(`gptrs.backends.faer.control`). A loop polls for signals after `_BUDGET` operations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from gptrs.backends.faer import scalars
from gptrs.backends.faer.control_lines import Array, UnwritableError, pointer
from gptrs.backends.faer.control_source import ControlSource
from gptrs.backends.faer.control_steps import StepWriter
from gptrs.ir.dims import product, same
from gptrs.ir.ops.control import cond, while_loop
from gptrs.ir.program import Instruction, Program, Value
from gptrs.kernels.compiler.parallel_loop import NJIT, wrapped

_STRIP = 1 << 12  # iterations of a scan between looks at the budget
_BUDGET = 1 << 26  # operations between polls, some 20 to 60 ms


class ControlWriter(StepWriter):
    """Writes the kernel of one instruction with regions."""

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
        arrays = [(a.text, pointer(a.type)) for a in given]
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
