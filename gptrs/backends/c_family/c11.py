"""The C11 dialect: kernels as functions, and a program as one that calls them.

Input: an `Assignment`. Output: the text of a source file and of its header. The program is a static
plan: it calls its kernels in order, and finds intermediate values at places in an arena that its
caller gives it. Sizes of symbols are arguments. Parameters and constants are parts of one array of
bytes, the weights.

    size_t NAME_arena_bytes(const int64_t *sizes)
    int NAME_run(const int64_t *sizes, const void *weights, void *arena, arguments, results)
    const char *NAME_message(int status)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from gptrs.backends.c_family.index_text import dim_text, symbols_in
from gptrs.backends.c_family.kernel import Kernel, KernelCall
from gptrs.backends.c_family.kernels.moving import copy_call
from gptrs.backends.c_family.memory import ALIGNMENT, Assignment, Place, bytes_of
from gptrs.backends.c_family.schedule import KernelStep
from gptrs.backends.c_family.size_checks import SizeCheck
from gptrs.ir.dims import same
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Fails, Instruction, Param, Value

_PARALLEL = """
#ifdef _OPENMP
#define PRAGMA(text) _Pragma(#text)
#define PARALLEL(operations) PRAGMA(omp parallel for schedule(static) if ((operations) > 32768))
#else
#define PARALLEL(operations)
#endif
"""


@cache
def _text(name: str) -> str:
    return (files("gptrs.backends.c_family") / name).read_text()


def vocabulary() -> str:
    """The text of ``vocabulary.h``."""
    return _text("vocabulary.h")


def main_template() -> str:
    """The text of ``greedy_main.c``, in which words between @ stand for what a model has there."""
    return _text("greedy_main.c")


def preamble() -> str:
    """What comes before the kernels of a file."""
    return vocabulary() + _PARALLEL


def c_name(text: str) -> str:
    """``text`` as a part of a C identifier."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "x"


@dataclass(frozen=True)
class Weight:
    """A parameter or a constant of the program, and where it begins in the weights."""

    value: Value
    offset: int
    bytes: int


@dataclass
class CProgram:
    """The C text of a program."""

    name: str
    assignment: Assignment
    checks: Sequence[SizeCheck] = ()
    weights: list[Weight] = field(default_factory=list[Weight])
    _kernels: dict[Kernel, str] = field(default_factory=dict[Kernel, str])
    _messages: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.name = c_name(self.name.rpartition(".")[2])
        program = self.assignment.schedule.program
        self.symbols = symbols_in(n for p in program.params for n in p.type.shape)
        read = self._read()
        stored: list[Value] = [p for p in program.params if p.role == "parameter" and p in read]
        stored += [i.result for i in program.body if i.op is constant and i.result in read]
        offset = 0
        for value in stored:
            size = bytes_of(value)
            assert isinstance(size, int)  # of a parameter or a constant
            self.weights.append(Weight(value, offset, size))
            offset += -(-size // ALIGNMENT) * ALIGNMENT
        self.weights_bytes = offset

    def _read(self) -> set[Value]:
        """The values whose arrays are read or written."""
        assignment = self.assignment
        steps = (s for s in assignment.steps if isinstance(s, KernelStep))
        places = {assignment.places[v] for s in steps for call in s.calls for v in call.values}
        places |= {assignment.places[value] for value, _ in assignment.copies}
        return {v for v, place in assignment.places.items() if place in places}

    @property
    def inputs(self) -> list[tuple[int, Param]]:
        """The arguments, with their numbers among the parameters."""
        params = enumerate(self.assignment.schedule.program.params)
        return [(n, p) for n, p in params if p.role == "input"]

    @property
    def outputs(self) -> list[tuple[int, Value]]:
        """The results that have arrays of their own: the others are in donated arguments."""
        pairs = zip(self.assignment.results, self.assignment.schedule.program.results, strict=True)
        return [(n, v) for n, (place, v) in enumerate(pairs) if place.kind == "result"]

    def header(self) -> str:
        """The header: what callers see."""
        name, guard = self.name, f"{self.name.upper()}_H"
        symbols = ", ".join(self.symbols) or "none: sizes may be NULL"
        return "\n".join(
            [
                f"/* {name}: written by gptrs.",
                "",
                f"   sizes: {symbols}",
                *(f"   {line}" for line in self._described()),
                "*/",
                f"#ifndef {guard}",
                f"#define {guard}",
                "#include <stddef.h>",
                "#include <stdint.h>",
                "#ifdef __cplusplus",
                'extern "C" {',
                "#endif",
                f"#define {self.name.upper()}_WEIGHTS_BYTES {self.weights_bytes}ull",
                "/* The bytes of the arena that a run at these sizes needs, aligned to 64. */",
                f"size_t {name}_arena_bytes(const int64_t *sizes);",
                "/* 0, or the status of an element or a size that has no result. */",
                f"{self._signature()};",
                f"const char *{name}_message(int status);",
                "#ifdef __cplusplus",
                "}",
                "#endif",
                "#endif",
                "",
            ]
        )

    def source(self) -> str:
        """The source file."""
        head = f"/* {self.name}: written by gptrs. */"
        return "\n".join([head, preamble(), f'#include "{self.name}.h"', "", self.functions()])

    def functions(self) -> str:
        """The kernels and the functions of the header, without what comes before them."""
        run = self._run()
        kernels = [_kernel_text(kernel, name) for kernel, name in self._kernels.items()]
        return "\n".join([*kernels, self._arena_bytes(), run, self._message(), ""])

    def _described(self) -> Iterator[str]:
        program = self.assignment.schedule.program
        for _, param in self.inputs:
            yield f"in_{c_name(param.name)}: {param.type}{', donated' if param.donated else ''}"
        for n, (place, value) in enumerate(
            zip(self.assignment.results, program.results, strict=True)
        ):
            where = f"out_{n}" if place.kind == "result" else f"result {n}"
            note = ""
            if place.kind == "argument":
                note = f", in the memory of in_{c_name(program.params[place.number].name)}"
            yield f"{where}: {value.type}{note}"

    def _signature(self) -> str:
        given = ["const int64_t *sizes", "const void *weights", "void *arena"]
        for number, param in self.inputs:
            const = "" if self._is_written(number) else "const "
            given.append(f"{const}void *in_{c_name(param.name)}")
        given += [f"void *out_{n}" for n, _ in self.outputs]
        return f"int {self.name}_run({', '.join(given)})"

    def _is_written(self, number: int) -> bool:
        place = Place("argument", number)
        steps = (s for s in self.assignment.steps if isinstance(s, KernelStep))
        places = self.assignment.places
        return any(places[v] == place for s in steps for c in s.calls for v in c.written)

    def _sizes(self) -> list[str]:
        lines = [f"const int64_t n_{s} = sizes[{n}];" for n, s in enumerate(self.symbols)]
        return [*lines, *(f"(void)n_{s};" for s in self.symbols)]

    def _slot_lines(self) -> list[str]:
        """Where each slot begins in the arena, and where the arena ends."""
        lines = ["size_t at = 0;"]
        for number, slot in enumerate(self.assignment.slots):
            unique = dict.fromkeys(dim_text(n) for n in slot.sizes)
            size, *others = unique
            for other in others:
                size = f"greatest({size}, {other})"
            lines.append(f"const size_t slot_{number} = at;")
            lines.append(f"at += ((size_t){size} + {ALIGNMENT - 1}) / {ALIGNMENT} * {ALIGNMENT};")
        return lines

    def _arena_bytes(self) -> str:
        slots = range(len(self.assignment.slots))
        return _function(
            f"size_t {self.name}_arena_bytes(const int64_t *sizes)",
            [
                "(void)sizes;",
                *self._sizes(),
                *self._slot_lines(),
                *(f"(void)slot_{n};" for n in slots),
                "return at;",
            ],
        )

    def _run(self) -> str:
        lines = ["(void)sizes, (void)weights, (void)arena;", *self._sizes()]
        for check in self.checks:
            lines.append(f"if ({check.condition}) return {self._status(check.message)};")
        lines += [*self._slot_lines(), "(void)at;"]
        if any(s.calls for s in self.assignment.steps if isinstance(s, KernelStep)):
            lines.append("int failed = 0;")
            lines.append("(void)failed;")
        for step in self.assignment.steps:
            assert isinstance(step, KernelStep)
            for call in step.calls:
                lines += self._call(call, self._failure(step))
        for value, number in self.assignment.copies:
            program = self.assignment.schedule.program
            target = Value(value.type)
            call = copy_call(value, target, [])
            assert program.results[number] is value
            arrays = [self._pointer(value), f"out_{number}"]
            lines += self._call(call, "", arrays)
        return _function(self._signature(), [*lines, "return 0;"])

    def _failure(self, step: KernelStep) -> str:
        failing = [m for m in step.members if m.fails is Fails.AT_ELEMENTS]
        return "\n".join(dict.fromkeys(map(_no_result, failing)))

    def _call(
        self, call: KernelCall, failure: str, arrays: Sequence[str] | None = None
    ) -> list[str]:
        kernel = call.kernel
        if same(call.extent, 0):
            return []
        name = self._kernels.setdefault(
            kernel, f"{self.name}_{len(self._kernels)}_{c_name(kernel.title)}"
        )
        given = [self._pointer(v) for v in call.values] if arrays is None else list(arrays)
        given += [dim_text(n) for n in call.numbers]
        given += [f"n_{symbol}" for symbol in kernel.symbols]
        if not kernel.fails:
            return [f"{name}({', '.join(given)});"]
        status = self._status(failure)
        return [f"{name}({', '.join([*given, '&failed'])});", f"if (failed) return {status};"]

    def _status(self, message: str) -> int:
        if message not in self._messages:
            self._messages.append(message)
        return self._messages.index(message) + 1

    def _pointer(self, value: Value) -> str:
        place = self.assignment.places[value]
        program = self.assignment.schedule.program
        match place.kind:
            case "argument" if program.params[place.number].role == "input":
                return f"in_{c_name(program.params[place.number].name)}"
            case "result":
                return f"out_{place.number}"
            case "slot":
                return f"(void *)((char *)arena + slot_{place.number})"
            case _:
                stored = self.assignment.places
                weight = next(w for w in self.weights if stored[w.value] == place)
                return f"(const void *)((const char *)weights + {weight.offset})"

    def _message(self) -> str:
        lines = ["switch (status) {", '  case 0: return "";']
        for number, message in enumerate(self._messages, 1):
            lines.append(f"  case {number}: return {_quoted(message)};")
        lines += ['  default: return "no such status";', "}"]
        return _function(f"const char *{self.name}_message(int status)", lines)


def _no_result(instruction: Instruction) -> str:
    where = "" if instruction.where is None else f"\n  at {instruction.where}"
    return f"{instruction.op.name}: an element has no result{where}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _function(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{head} {{", *(f"  {line}" for line in lines), "}", ""])


def _kernel_text(kernel: Kernel, name: str) -> str:
    """A kernel as a function."""
    given = [
        f"{'' if array.written else 'const '}{array.kind} *restrict {array.name}"
        for array in kernel.arrays
    ]
    given += [f"const isize {word}" for word in kernel.numbers]
    given += [f"const isize n_{symbol}" for symbol in kernel.symbols]
    given += ["int *restrict failed"] if kernel.fails else []
    i = kernel.index
    lines = [
        *kernel.head,
        f"PARALLEL(({kernel.extent}) * ({kernel.work}))",
        f"for (isize {i} = 0; {i} < {kernel.extent}; {i}++) {{",
        *(f"  {line}" for line in kernel.body),
        "}",
    ]
    return _function(f"static void {name}({', '.join(given)})", lines)
