"""``fn.passes``: the passes over one program as a sequence, with diffs as text and HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import overload

from gptrs.debug.diff import Change, changes
from gptrs.html_tables import Markup, block, code, fragment, joined, opening
from gptrs.ir.program import Program
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.base import PassRan

_KINDS = {"+": "plus", "-": "minus", "@": "place"}


@dataclass(frozen=True)
class Passes(Sequence[PassRan]):
    """The passes that ran over a program, in order: for each its ``name``, the programs ``before``
    and ``after``, ``seconds`` and ``rewrites``.

    The text has a unified diff for each pass that changed the program. In diffs a value keeps its
    name from pass to pass, where printed programs number values anew.
    """

    program: Program
    """As it was traced."""
    ran: tuple[PassRan, ...]

    @property
    def programs(self) -> tuple[Program, ...]:
        """The program as it was traced, and after each pass that changed it."""
        return (self.program, *(ran.after for ran in self.changed))

    @property
    def changed(self) -> tuple[PassRan, ...]:
        """The passes that changed the program."""
        return tuple(ran for ran in self.ran if ran.after is not ran.before)

    @overload
    def __getitem__(self, index: int) -> PassRan: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PassRan, ...]: ...
    def __getitem__(self, index: int | slice) -> PassRan | tuple[PassRan, ...]:
        return self.ran[index]

    def __len__(self) -> int:
        return len(self.ran)

    def __str__(self) -> str:
        parts = [f"{self._head()}"]
        for title, change in self._sections():
            parts.append(f"--- {title}\n{change}")
        return "\n\n".join(parts)

    __repr__ = __str__

    def _head(self) -> str:
        seconds = sum(ran.seconds for ran in self.ran)
        return (
            f"{self.program.name}: {len(self.changed)} of {len(self)} passes changed the program"
            f" ({seconds * 1e3:.1f} ms)"
        )

    def _sections(self) -> Iterator[tuple[str, Change]]:
        """A title and the change, for each pass that changed the program."""
        numbered = [(n, ran) for n, ran in enumerate(self.ran, 1) if ran.after is not ran.before]
        for (number, ran), change in zip(numbered, changes(*self.programs), strict=True):
            counts = f"{len(ran.before.body)} → {len(ran.after.body)} instructions"
            applied = f": {counted(ran.rewrites)}" if ran.rewrites else ""
            yield f"{number} {ran.name}, {counts}{applied}", change

    def _repr_html_(self) -> str:
        """The same for notebooks: a part that opens for each pass."""
        parts = [block(self._head())]
        for title, change in self._sections():
            parts.append(opening(title, code(joined(map(_html_line, change.lines())))))
        return fragment(*parts)


def counted(rewrites: Sequence[str]) -> str:
    """The names of rewrites, each once: ``merge exp ×2, fold add``."""
    counts = Counter(rewrites).items()
    return ", ".join(name if count == 1 else f"{name} ×{count}" for name, count in counts)


def _html_line(line: str) -> Markup:
    return block(line, _KINDS.get(line[:1], ""))
