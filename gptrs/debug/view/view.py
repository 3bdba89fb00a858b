"""`View`: a lowering as a page, for notebooks, files and the command line."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gptrs.debug.lowering import Lowering
from gptrs.debug.profile.profile import Profile
from gptrs.debug.view.document import document
from gptrs.debug.view.exports import graphviz, model_explorer
from gptrs.debug.view.page import page
from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property

_HEIGHT = 720  # pixels, in a notebook
_GRAPHS = {".json": model_explorer, ".dot": graphviz, ".gv": graphviz}
"""The formats of other viewers, by the ending of a file."""


@dataclass(frozen=True)
class View:
    """A traced program, its passes and its plan as one HTML page that needs no network.

    A notebook shows it; `save` writes it. ``error`` is what ended the lowering; the page then has
    what there was up to there.
    """

    lowering: Lowering
    sizes: Mapping[str, int]
    error: BaseException | None = None
    listings: bool = True
    """Whether the page has the LLVM IR and assembly of kernels, which are compiled for it."""
    times: Profile | None = None
    """A profile of calls, whose times the timeline shows."""
    kept: object = None
    """The arguments: groups are named by the layers among them."""

    @cached_property
    def document(self) -> dict[str, Any]:
        """The data of the page: see `gptrs.debug.view.document`."""
        return document(
            self.lowering,
            self.sizes,
            error=self.error,
            listings=self.listings,
            times=self.times,
        )

    @cached_property
    def html(self) -> str:
        """The page."""
        return page(self.document)

    def with_times(self, profile: Profile) -> View:
        """The same page with the times that steps took in ``profile``, of the same function at the
        same sizes, in place of estimates."""
        return replace(self, times=profile)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the view by the ending of ``path``, and return it: ``.json`` a graph collection for
        Model Explorer, ``.dot`` or ``.gv`` the program as it was traced for Graphviz, any other the
        page. Raises `OSError` where that cannot be, `ArgumentError` where there is nothing to draw.
        """
        target = Path(path)
        ending = target.suffix.lower()
        if ending in _GRAPHS and not self.document["stages"]:
            raise ArgumentError(
                f"{self.lowering.function} has no program to write to {target.name}: its trace"
                " failed at once",
                fix="write the page, which has the error: view.html",
            )
        text = _GRAPHS[ending](self.document) if ending in _GRAPHS else self.html
        target.write_text(text, encoding="utf-8")
        return target

    def __repr__(self) -> str:
        stages = len(self.document["stages"])
        ended = "" if self.error is None else f", ended by {type(self.error).__name__}"
        return f"<View of {self.lowering.function}: {stages} stages{ended}; .save(path) writes it>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="{html.escape(repr(self))}" style="'
            f'width:100%;height:{_HEIGHT}px;border:1px solid #8884;border-radius:8px"></iframe>'
        )
