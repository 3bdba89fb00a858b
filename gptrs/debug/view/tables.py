"""Tables of a view: each instruction, value and source file of all stages once, by number.

Instructions are immutable and shared between the programs of a lowering, so that a stage is a list
of numbers. A value has one name in all stages, as in the diffs of ``fn.passes``.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gptrs.backends.instruction_costs import flops, traffic, value_bytes
from gptrs.cell_names import cell_name
from gptrs.debug.call_groups import Groups
from gptrs.debug.diff import Names
from gptrs.errors import Location
from gptrs.ir.kinds import OpKind
from gptrs.ir.printing import instruction_text
from gptrs.ir.program import DerivedParam, Instruction, Param, Program, Value

Json = dict[str, Any]
_STRING = re.compile(r"\"[^\"]{60,}\"|'[^']{60,}'|\[[^][]{120,}\]")  # elements of arrays
_LONGEST_FILE = 400_000  # characters


class Tables:
    """Instructions, values and files seen so far. ``sizes`` are those of the symbols."""

    def __init__(self, name: str, sizes: Mapping[str, int]) -> None:
        self.groups = Groups(name)
        self.instructions: list[Json] = []
        self.values: list[Json] = []
        self.files: list[Json] = []
        self._sizes = sizes
        self._names = Names()
        self._instruction_numbers: dict[Instruction, int] = {}
        self._value_numbers: dict[Value, int] = {}
        self._file_numbers: dict[str, int] = {}
        self._makers: dict[Value, int] = {}

    def program(self, program: Program, parent: int | None = None) -> Json:
        """``program`` as numbers of its parameters, instructions and results."""
        names = {**self._names.add(program), **{p: p.name for p in program.params}}
        params = [self._value(param, param.name) for param in program.params]
        body = [self._instruction(i, names, parent) for i in program.body]
        self._place(body)
        results = [self._value(value, names.get(value, "?")) for value in program.results]
        return {"params": params, "body": body, "results": results}

    def member(self, instruction: Instruction) -> int | None:
        """The number of an instruction in a program seen before, or of one with its results."""
        found = self._instruction_numbers.get(instruction)
        if found is None:
            makers = (self._makers.get(result) for result in instruction.results)
            found = next((maker for maker in makers if maker is not None), None)
        return found

    def number_of(self, value: Value) -> int | None:
        """The number of a value seen before."""
        return self._value_numbers.get(value)

    def line(self, where: Location | None) -> Json:
        """A user's line: the number of its file, the line, the function."""
        if where is None:
            return {}
        number = self._file_numbers.setdefault(where.file, len(self.files))
        if number == len(self.files):
            text = "".join(linecache.getlines(where.file))
            self.files.append(
                {"path": cell_name(where.file) or where.file, "text": text[:_LONGEST_FILE]}
            )
        return {"file": number, "line": where.line, "function": where.function}

    def _value(self, value: Value, name: str) -> int:
        found = self._value_numbers.get(value)
        if found is None:
            found = self._value_numbers[value] = len(self.values)
            entry: Json = {"name": name, "type": str(value.type)}
            entry["bytes"] = value_bytes(value, self._sizes)
            if isinstance(value, Param):
                derived = isinstance(value, DerivedParam)
                entry["role"] = "derived" if derived else value.role
                if value.donated:
                    entry["donated"] = True
            self.values.append(entry)
        return found

    def _instruction(
        self, instruction: Instruction, names: Mapping[Value, str], parent: int | None
    ) -> int:
        found = self._instruction_numbers.get(instruction)
        if found is not None:
            return found
        number = self._instruction_numbers[instruction] = len(self.instructions)
        read, written = traffic(instruction, self._sizes)
        target = instruction.attrs.get("target")
        entry: Json = {
            "op": target if isinstance(target, str) else instruction.op.name,
            "kind": self._kind(instruction).name.lower(),
            "in": [self._value(v, names.get(v, "?")) for v in instruction.values()],
            "out": [self._value(v, names.get(v, "?")) for v in instruction.results],
            "text": _STRING.sub("…", instruction_text(instruction, names)),
            "flops": flops(instruction, self._sizes),
            "read": read,
            "written": written,
            "group": self.groups.of(instruction.where),
            **self.line(instruction.where),
        }
        if parent is not None:
            entry["parent"] = parent
        self.instructions.append(entry)
        regions = [(k, a) for k, a in instruction.attrs.items() if isinstance(a, Program)]
        if regions:
            entry["regions"] = [{"name": n, **self.program(r, number)} for n, r in regions]
        for result in instruction.results:
            self._makers.setdefault(result, number)
        return number

    def _kind(self, instruction: Instruction) -> OpKind:
        """The kind of its op; of a custom call, that of what it spends most on."""
        definition = instruction.attrs.get("definition")
        if not isinstance(definition, Program) or not definition.body:
            return instruction.op.kind
        return max(definition.body, key=lambda i: flops(i, self._sizes)).op.kind

    def _place(self, body: Sequence[int]) -> None:
        """Put instructions that passes made without a line into the group of one that reads them,
        else of one that they read."""
        reader: dict[int, int] = {}
        for number in reversed(body):
            entry = self.instructions[number]
            if entry["group"] is None:
                readers = (reader[v] for v in entry["out"] if v in reader)
                entry["group"] = next(readers, 0)
            for value in entry["in"]:
                reader[value] = entry["group"]
