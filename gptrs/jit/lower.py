"""From a traced program to the one that a backend gets."""

from __future__ import annotations

from gptrs import settings
from gptrs.backends.base import Backend
from gptrs.ir.program import Program
from gptrs.ir.rewrite import Fuel
from gptrs.jit.arguments import Options
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower


def lowered(program: Program, backend: Backend, options: Options) -> Program:
    """``program`` after all passes, as the settings and the options of its function say."""
    precise = settings.precise() if options.precise is None else options.precise
    context = Context(backend, _fuel(), precise)
    return lower(program, context, check=settings.verify())


_shared: dict[int, Fuel] = {}  # the one for the whole process, by what GPTRS_FUEL says


def _fuel() -> Fuel:
    """Endless, or what ``GPTRS_FUEL`` leaves to this process; another setting starts anew."""
    limit = settings.fuel()
    if limit < 0:
        return Fuel()
    if limit not in _shared:
        _shared.clear()
        _shared[limit] = Fuel(limit)
    return _shared[limit]
