"""Line diffs between forms of one program, with the same names for the same values.

Printed programs number their values anew after every pass. Here a value keeps its name from form to
form, so that a unified diff shows changed instructions only. Used by `gptrs.debug.passes`,
`gptrs.debug.fuel` and `gptrs.jit.numerics`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest

from gptrs.errors import Location
from gptrs.ir.program import Instruction, Operand, Program, Value, key_of
from gptrs.lazy_dataclass import dataclass

_INSTRUCTION = re.compile(r"    (\S.*?) = ptir\.")
_REGION = re.compile(r"    def (region\d+)\(")
_STRING = re.compile(r"""("[^"]*"|'[^']*')""")
_NAME = re.compile(r"(?<![\w.])(?:v|region)\d+(?!\w)")
_HOST_NUMBER = re.compile(r"#\d+(?=')")  # of a function for `ptir.callback`, new in each trace
_LONGEST = 60  # characters of a string that are shown: a large array is printed as one
_AROUND = 2  # unchanged lines shown before and after a change


@dataclass(frozen=True)
class Line:
    """A line of a program's text, and the user's line of its instruction."""

    text: str
    where: Location | None = None


class Names:
    """Names of values across several forms of one program.

    A value that a pass leaves in place keeps its name. A value that a pass created gets the name of
    a value of another form with the same op and operands, else a new one.
    """

    def __init__(self) -> None:
        self._names: dict[Value, str] = {}
        self._made: dict[object, str] = {}

    def lines(self, program: Program) -> list[Line]:
        """The text of ``program`` with these names, from its signature on."""
        self.add(program)
        texts = [text for text in str(program).splitlines() if text]
        start = next(n for n, text in enumerate(texts) if text.startswith("def "))
        body = next(n for n in range(start, len(texts)) if texts[n].endswith("):")) + 1
        found = [Line(text) for text in texts[start:body]]
        printed: dict[str, str] = {}  # by the names in the text
        instructions = iter(program.body)
        part: list[str] = []  # the regions of an instruction, which stand before it
        for text in texts[body:]:
            part.append(text)
            if match := _INSTRUCTION.match(text):
                instruction = next(instructions)
                made = [self._names[result] for result in instruction.results]
                printed |= zip(match[1].split(", "), made, strict=True)
                regions = filter(None, map(_REGION.match, part))
                printed |= {r[1]: f"{made[0]}_region{n}" for n, r in enumerate(regions)}
                found += [Line(_renamed(p, printed), instruction.where) for p in part]
                part.clear()
        return [*found, *(Line(_renamed(text, printed)) for text in part)]

    def add(self, program: Program) -> Mapping[Value, str]:
        """The names of all values so far, those that the instructions of ``program`` make among
        them."""
        taken = {self._names[r] for i in program.body for r in i.results if r in self._names}
        for instruction in program.body:
            key = self._key(instruction)
            for place, result in enumerate(instruction.results):
                if result not in self._names:
                    alike = self._made.get((key, place))
                    free = alike is not None and alike not in taken
                    self._names[result] = alike if free and alike else f"v{len(self._names)}"
                self._made[key, place] = self._names[result]
                taken.add(self._names[result])
        return self._names

    def _key(self, instruction: Instruction) -> object:
        attrs = ((name, _attr(value)) for name, value in sorted(instruction.attrs.items()))
        return instruction.op.name, self._operand(instruction.operands), tuple(attrs)

    def _operand(self, operand: Operand) -> object:
        if isinstance(operand, Value):
            return self._names.get(operand, operand)  # a parameter stands for itself
        if isinstance(operand, tuple):
            return tuple(map(self._operand, operand))
        return key_of(operand)


def _attr(value: object) -> object:
    return str(value) if isinstance(value, Program) else key_of(value)


def _renamed(text: str, names: dict[str, str]) -> str:
    """A line with other names; names inside a region are not replaced."""
    parts = _STRING.split(text)
    own = text.startswith("     ")
    for number, part in enumerate(parts):
        if number % 2 and len(part) > _LONGEST:
            parts[number] = f"{part[: _LONGEST // 2]}…{part[0]}"
        elif number % 2 == 0 and not own:
            parts[number] = _NAME.sub(lambda found: names.get(found[0], found[0]), part)
    return "".join(parts)


@dataclass(frozen=True)
class Change:
    """The difference between two forms of a program. Its text is a unified diff."""

    before: Sequence[Line]
    after: Sequence[Line]

    def lines(self) -> Iterator[str]:
        """The lines of the diff."""
        from difflib import unified_diff  # slow to import

        before, after = ([line.text for line in side] for side in (self.before, self.after))
        found = unified_diff(before, after, n=_AROUND, lineterm="")
        return (line for line in found if not line.startswith(("---", "+++")))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @property
    def where(self) -> Location | None:
        """The user's line that the first changed instruction comes from."""
        from difflib import SequenceMatcher  # as in `lines`

        before, after = ([line.text for line in side] for side in (self.before, self.after))
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            changed = [] if kind == "equal" else [*self.before[a:b], *self.after[c:d]]
            if found := next((line.where for line in changed if line.where), None):
                return found
        return None


def changes(*programs: Program) -> Iterator[Change]:
    """The difference between each form of a program and the next."""
    names = Names()
    texts = [names.lines(program) for program in programs]
    return (Change(before, after) for before, after in pairwise(texts))


def first_difference(before: Program, after: Program) -> tuple[Line, Line] | None:
    """The first lines in which the texts of two programs differ, empty where one has ended; None
    for equal texts. Both number their values from 0, as two traces of one function do."""
    texts = [_HOST_NUMBER.sub("", str(program)) for program in (before, after)]
    if texts[0] == texts[1]:
        return None
    whole = [[line for line in text[text.index("def ") :].splitlines() if line] for text in texts]
    shown = [Names().lines(program) for program in (before, after)]
    for place, (old, new) in enumerate(zip_longest(*whole)):
        if old != new:
            first, second = (dict(enumerate(lines)).get(place, Line("")) for lines in shown)
            return first, second
    return Line(texts[0].partition("def ")[0]), Line(texts[1].partition("def ")[0])
