"""The C11 dialect: a program as a source file and its header.

Input: a `CPlan`. Output: text. Kernels, branches and steps of loops are functions, which the
function of the program calls in order. Sizes of symbols are arguments. Parameters and constants are
parts of one array of bytes, the weights.

    size_t NAME_arena_bytes(const int64_t *sizes)
    int NAME_run(const int64_t *sizes, const void *weights, void *arena, arguments, results)
    const char *NAME_message(int status)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cache
from importlib.resources import files

from gptrs.backends.c_family.c_function import CFunction, Unit, c_name, function_text
from gptrs.backends.c_family.c_plan import CPlan
from gptrs.backends.c_family.index_text import symbols_in
from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.c_family.memory import ALIGNMENT, Assignment, bytes_of
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Param, Value
from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass

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


@dataclass(frozen=True)
class Weight:
    """A parameter or a constant of the program, and where it begins in the weights."""

    value: Value
    offset: int
    bytes: int
    constant: Array | None
    """The array of a constant."""


@dataclass
class CProgram:
    """The C text of a program."""

    name: str
    plan: CPlan
    weights: list[Weight] = field(default_factory=list[Weight])

    def __post_init__(self) -> None:
        self.name = c_name(self.name.rpartition(".")[2])
        params = self.plan.program.params
        self.symbols = symbols_in(n for p in params for n in p.type.shape)
        used = self.plan.stored()
        stored: dict[Value, Array | None] = {
            p: None for p in params if p.role == "parameter" and p in used
        }
        for plan in self.plan.nested():
            used = plan.stored()
            made = (i for i in plan.program.body if i.op is constant and i.result in used)
            stored.update((i.result, i.attrs["value"]) for i in made)
        offset = 0
        for value, array in stored.items():
            size = bytes_of(value)
            assert isinstance(size, int)  # of a parameter or a constant
            self.weights.append(Weight(value, offset, size, array))
            offset += -(-size // ALIGNMENT) * ALIGNMENT
        self.weights_bytes = offset

    @property
    def assignment(self) -> Assignment:
        return self.plan.assignment

    @property
    def inputs(self) -> list[tuple[int, Param]]:
        """The arguments, with their numbers among the parameters."""
        params = enumerate(self.plan.program.params)
        return [(n, p) for n, p in params if p.role == "input"]

    @property
    def outputs(self) -> list[tuple[int, Value]]:
        """The results that have arrays of their own: the others are in donated arguments."""
        return self._main().outputs

    def _main(self) -> CFunction:
        """The function of the program."""
        unit = Unit(self.name, self.symbols, {w.value: w.offset for w in self.weights})
        inputs = {param: f"in_{c_name(param.name)}" for _, param in self.inputs}
        return CFunction(unit, self.name, self.plan, inputs)

    def header(self) -> str:
        """The header: what callers see."""
        name, guard, main = self.name, f"{self.name.upper()}_H", self._main()
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
                f"{main.arena_signature()};",
                "/* 0, or the status of an element or a size that has no result. */",
                f"{main.signature()};",
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
        main = self._main()
        run, unit = main.run(), main.unit
        kernels = [_kernel_text(kernel, name) for kernel, name in unit.kernels.items()]
        parts = [*kernels, *unit.functions, main.arena_bytes(), run, self._message(unit), ""]
        return "\n".join(parts)

    def _described(self) -> Iterator[str]:
        program = self.plan.program
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

    def _message(self, unit: Unit) -> str:
        lines = ["switch (status) {", '  case 0: return "";']
        for number, message in enumerate(unit.messages, 1):
            lines.append(f"  case {number}: return {_quoted(message)};")
        lines += ['  default: return "no such status";', "}"]
        return function_text(f"const char *{self.name}_message(int status)", lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


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
    return function_text(f"static void {name}({', '.join(given)})", lines)
