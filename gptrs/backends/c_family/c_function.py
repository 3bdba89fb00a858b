"""A program as a C function, which calls its kernels, and the functions of its regions, in order.

Input: a `CPlan`. A function finds intermediate values at slots of an arena that its caller gives
it; after them is room for what its branches and loops need, which is used again by the next.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from gptrs.backends.c_family.c_control import Region, aligned, control_text
from gptrs.backends.c_family.c_plan import CPlan
from gptrs.backends.c_family.index_text import dim_text
from gptrs.backends.c_family.kernel import Kernel, KernelCall
from gptrs.backends.c_family.kernels.moving import copy_call
from gptrs.backends.c_family.memory import Place
from gptrs.backends.c_family.schedule import KernelStep
from gptrs.ir.dims import same
from gptrs.ir.program import Fails, Instruction, Param, Value
from gptrs.lazy_dataclass import dataclass


def c_name(text: str) -> str:
    """``text`` as a part of a C identifier."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "x"


def function_text(head: str, lines: Sequence[str]) -> str:
    """A function of C."""
    return "\n".join([f"{head} {{", *(f"  {line}" for line in lines), "}", ""])


@dataclass
class Unit:
    """What the functions of a file share: its kernels, weights and messages."""

    name: str
    symbols: tuple[str, ...]
    offsets: Mapping[Value, int]
    """Where parameters and constants begin in the weights."""
    kernels: dict[Kernel, str] = field(default_factory=dict[Kernel, str])
    messages: list[str] = field(default_factory=list[str])
    functions: list[str] = field(default_factory=list[str])
    """The functions of regions, those that are called before those that call them."""
    regions: int = 0

    def status(self, message: str) -> int:
        """The status that has this message."""
        if message not in self.messages:
            self.messages.append(message)
        return self.messages.index(message) + 1

    def kernel(self, kernel: Kernel) -> str:
        """The name of a kernel's function."""
        name = f"{self.name}_{len(self.kernels)}_{c_name(kernel.title)}"
        return self.kernels.setdefault(kernel, name)

    def region(self, word: str) -> str:
        """A name for the functions of a region."""
        self.regions += 1
        return f"{self.name}_{c_name(word)}_{self.regions}"


class CFunction:
    """The function of a program, and the one that says how large its arena is."""

    def __init__(self, unit: Unit, name: str, plan: CPlan, inputs: Mapping[Param, str]) -> None:
        self.unit, self.name, self.plan = unit, name, plan
        self._inputs = inputs
        self._places = plan.assignment.places
        self._rooms: list[str] = []  # in bytes, of its branches and loops

    @property
    def outputs(self) -> list[tuple[int, Value]]:
        """The results that have arrays of their own: the others are in donated arguments."""
        pairs = zip(self.plan.assignment.results, self.plan.program.results, strict=True)
        return [(n, v) for n, (place, v) in enumerate(pairs) if place.kind == "result"]

    def signature(self) -> str:
        """What the function takes and returns."""
        given = ["const int64_t *sizes", "const void *weights", "void *arena"]
        for param, name in self._inputs.items():
            const = "" if self._is_written(param) else "const "
            given.append(f"{const}void *{name}")
        given += [f"void *out_{n}" for n, _ in self.outputs]
        return f"int {self.name}_run({', '.join(given)})"

    def arena_signature(self) -> str:
        """What the function of the size of the arena takes and returns."""
        return f"size_t {self.name}_arena_bytes(const int64_t *sizes)"

    def _is_written(self, param: Param) -> bool:
        place = Place("argument", self.plan.program.params.index(param))
        steps = (s for s in self.plan.assignment.steps if isinstance(s, KernelStep))
        return any(self._places[v] == place for s in steps for c in s.calls for v in c.written)

    def _sizes(self) -> list[str]:
        lines = ["(void)sizes;"]
        for number, symbol in enumerate(self.unit.symbols):
            lines += [f"const int64_t n_{symbol} = sizes[{number}];", f"(void)n_{symbol};"]
        return lines

    def _slots(self) -> list[str]:
        """Where each slot begins in the arena, and where the arena ends."""
        lines = ["size_t at = 0;"]
        for number, slot in enumerate(self.plan.assignment.slots):
            unique = dict.fromkeys(dim_text(n) for n in slot.sizes)
            size, *others = unique
            for other in others:
                size = f"greatest({size}, {other})"
            lines += [f"const size_t slot_{number} = at;", f"(void)slot_{number};"]
            lines.append(f"at += {aligned(size)};")
        return lines

    def arena_bytes(self) -> str:
        """The function that says how large the arena is; `run` comes before it."""
        lines = [*self._sizes(), *self._slots()]
        if self._rooms:
            lines.append("isize most = 0;")
            lines += [f"most = greatest(most, (isize)({room}));" for room in self._rooms]
            lines.append("at += (size_t)most;")
        return function_text(self.arena_signature(), [*lines, "return at;"])

    def run(self) -> str:
        """The function itself."""
        unit, assignment = self.unit, self.plan.assignment
        lines = ["(void)weights, (void)arena;", *self._sizes()]
        for check in self.plan.checks:
            lines.append(f"if ({check.condition}) return {unit.status(check.message)};")
        lines += [*self._slots(), "(void)at;"]
        lines += ["int failed = 0;", "(void)failed;"]
        for step in assignment.steps:
            if isinstance(step, KernelStep):
                for call in step.calls:
                    lines += self._call(call, self._failure(step))
            else:
                lines += self._control(step.instruction)
        for value, number in assignment.copies:
            assert self.plan.program.results[number] is value
            call = copy_call(value, Value(value.type), [])
            lines += self._call(call, "", [self.pointer(value), f"out_{number}"])
        return function_text(self.signature(), [*lines, "return 0;"])

    def _control(self, instruction: Instruction) -> list[str]:
        control = self.plan.controls[instruction]
        regions = [self._region(plan) for plan in control.regions]
        text = control_text(control, regions, self.pointer)
        self._rooms.append(text.room)
        where = "" if instruction.where is None else f" at {instruction.where}"
        comment = f"{instruction.op.name}{where}".replace("*/", "* /")
        return [f"/* {comment} */", "{", *(f"  {line}" for line in text.lines), "}"]

    def _region(self, plan: CPlan) -> Region:
        """Write the functions of a region."""
        name = self.unit.region(plan.program.name)
        inputs = {param: f"in_{n}" for n, param in enumerate(plan.program.params)}
        function = CFunction(self.unit, name, plan, inputs)
        run = function.run()
        self.unit.functions += [f"static {text}" for text in (function.arena_bytes(), run)]
        return Region(name, plan, tuple(n for n, _ in function.outputs))

    def _failure(self, step: KernelStep) -> str:
        failing = [m for m in step.members if m.fails is Fails.AT_ELEMENTS]
        return "\n".join(dict.fromkeys(map(_no_result, failing)))

    def _call(
        self, call: KernelCall, failure: str, arrays: Sequence[str] | None = None
    ) -> list[str]:
        kernel = call.kernel
        if same(call.extent, 0):
            return []
        name = self.unit.kernel(kernel)
        given = [self.pointer(v) for v in call.values] if arrays is None else list(arrays)
        given += [dim_text(n) for n in call.numbers]
        given += [f"n_{symbol}" for symbol in kernel.symbols]
        if not kernel.fails:
            return [f"{name}({', '.join(given)});"]
        status = self.unit.status(failure)
        return [f"{name}({', '.join([*given, '&failed'])});", f"if (failed) return {status};"]

    def pointer(self, value: Value) -> str:
        """The address of a value's array."""
        place = self._places[value]
        params = self.plan.program.params
        match place.kind:
            case "argument" if params[place.number] in self._inputs:
                return self._inputs[params[place.number]]
            case "result":
                return f"out_{place.number}"
            case "slot":
                return f"(void *)((char *)arena + slot_{place.number})"
            case _:
                known = self.unit.offsets
                offset = next(known[v] for v in known if self._places.get(v) == place)
                return f"(const void *)((const char *)weights + {offset})"


def _no_result(instruction: Instruction) -> str:
    where = "" if instruction.where is None else f"\n  at {instruction.where}"
    return f"{instruction.op.name}: an element has no result{where}"
