"""``fn.view``: one lowering recorded for a page.

The function is traced anew, and the program cache keeps its programs. A lowering that fails is
recorded up to there.
"""

from __future__ import annotations

from contextlib import ExitStack
from types import FunctionType

from gptrs import events
from gptrs.backends.base import Backend
from gptrs.debug.lowering import Lowering
from gptrs.debug.view.view import View
from gptrs.errors import user_location
from gptrs.jit.arguments import Arguments
from gptrs.jit.lower import prepare
from gptrs.jit.options import Options
from gptrs.jit.overrides import Overrides


def view(
    function: FunctionType,
    arguments: Arguments,
    name: str,
    backend: Backend,
    options: Options,
    overrides: Overrides,
    *,
    listings: bool = True,
) -> View:
    """The view of a call with ``arguments``. An error of the lowering is part of it."""
    lowering = Lowering(name, "a view", user_location())
    error: Exception | None = None
    with ExitStack() as stack:
        stack.enter_context(events.listen(lowering.hear))
        try:
            prepare(function, arguments, name, backend, options, overrides)
        except Exception as caught:  # whatever the user's function raises is drawn
            error = caught
    return View(lowering, dict(arguments.sizes), error, listings, kept=arguments)
