"""Guards: the reads of a traced call repeated and compared by identity, without a traversal.

A guard is built from the read log of `gptrs.jit.captures` when a call is cached, and evaluated at
every later call with the same fast key (`gptrs.jit.fast_path`). Steps are reordered so that objects
with the same attributes are read together, column by column; the ids of all values are compared as
one block of memory (`gptrs.identity_key`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from types import FunctionType
from typing import Any, TypeAlias
from weakref import ref

from gptrs.identity_key import getter, identities
from gptrs.jit.captures import Captures
from gptrs.jit.fast_path.object_graph import is_array
from gptrs.jit.fast_path.read_log import FUNCTION, ROOTS, CodeReader, Step

# A step of the read log, and None. Or, for several objects alike: a getter of them, their type, the
# names of their attributes, the reader, and the number of attributes of each object.
_Check: TypeAlias = tuple[Any, type, tuple[str, ...] | None, int, Any, list[int] | None]
_FEW = 3  # objects that are read one by one in less time than together

_content = attrgetter("cell_contents")


class Guard:
    """Repeats the reads of a traversal and compares the values by identity.

    Equal ids mean the same object only if the first was not freed meanwhile: plain values are kept
    alive here or by the program. Containers and objects with attributes are not, so that a model
    can be freed: their types and contents are compared instead. A guard fails for good when a
    parameter that it read is freed.
    """

    def __init__(self, function: FunctionType, captures: Captures) -> None:
        self.function = function
        reads = captures.reads
        order = _ReorderedSteps(reads.steps)
        self.code = order.code
        self._get, self._absent = order.code.get, order.code.absent
        self._scope, self._cells = function.__globals__, function.__closure__
        self.checks = order.checks
        self._same = identities([reads.values[place] for place in order.places])
        self._held = reads.held, captures.alive
        at = order.at
        self.arrays = [(at[place], kind, token) for place, kind, token in captures.arrays]
        self.parameter_places = [at[place] for place in captures.parameter_places]
        self.intact = intact = [True]
        self._ends = [ref(parameter, lambda _: intact.clear()) for parameter in captures.parameters]

    def read(self, roots: list[object]) -> list[Any] | None:
        """All values, or None when one changed. An error means that one changed, too."""
        scope, function = self._scope, self.function
        if self._absent and not scope.keys().isdisjoint(self._absent):
            return None
        values: list[Any] = [function, *roots, function.__code__]
        if self._cells is not None:
            values += map(_content, self._cells)
        values += self._get(scope)
        for place, kind, names, count, read, alike in self.checks:
            if alike is not None and names is not None:
                fields = [each.__dict__ for each in place(values) if type(each) is kind]
                if list(map(len, fields)) != alike:
                    return None
                for name in names:
                    values += [each[name] for each in fields]
                continue
            parent = values[place]
            if type(parent) is not kind:
                return None
            if names is not None:
                parent = parent.__dict__
                if len(parent) != len(names):
                    return None
            found = read(parent)
            if len(found) != count:
                return None
            values += found
        if identities(values) != self._same or not self.intact:
            return None
        for place, kind, token in self.arrays:
            if type(values[place]) is not kind or not is_array(values[place], token):
                return None
        return values


class _ReorderedSteps:
    """The steps of a read log in an order in which objects with the same attributes are read
    together: first the function and the arguments, and each step after the one it reads from."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._begins: list[int] = []  # the old index of the first value of each step
        self.code: CodeReader
        self.checks: list[_Check] = []
        self.places: list[int] = []  # old indices in the new order
        self.at: dict[int, int] = {}  # old index → new index
        first, groups = self._sorted()
        self._move([FUNCTION])
        for number in first:
            self._move(self._values(number))
        for members in groups:
            if len(members) > _FEW:
                self._join(members)
            else:
                for number in members:
                    self._keep(number)

    def _sorted(self) -> tuple[list[int], list[list[int]]]:
        """The numbers of the first steps, and groups of the others that may be read together,
        ordered by their depth."""
        roots: list[int] = []
        code: list[int] = []
        groups: dict[tuple[Any, ...], list[int]] = {}
        depths = [0, 0]  # of each value
        for number, (place, kind, names, count, read) in enumerate(self._steps):
            self._begins.append(len(depths))
            depth = depths[place]
            if place == ROOTS:
                roots.append(number)
            elif place == FUNCTION and isinstance(read, CodeReader):
                code.append(number)
                self.code = read
            else:
                depth += 1
                alone = number if names is None else None
                groups.setdefault((depth, alone, kind, names), []).append(number)
            depths += [depth] * count
        return roots + code, [groups[key] for key in sorted(groups, key=lambda key: key[0])]

    def _values(self, number: int) -> range:
        """The old indices of the values that a step reads."""
        begin = self._begins[number]
        return range(begin, begin + self._steps[number][3])

    def _move(self, places: Sequence[int]) -> None:
        for place in places:
            self.at[place] = len(self.places)
            self.places.append(place)

    def _keep(self, number: int) -> None:
        place, kind, names, count, read = self._steps[number]
        self.checks.append((self.at[place], kind, names, count, read, None))
        self._move(self._values(number))

    def _join(self, members: Sequence[int]) -> None:
        _, kind, names, count, read = self._steps[members[0]]
        names = names or ()
        parents = getter([self.at[self._steps[number][0]] for number in members])
        self.checks.append((parents, kind, names, count, read, [len(names)] * len(members)))
        for column in range(len(names)):
            self._move([self._values(number)[column] for number in members])
