"""``ptir.no_retrace``: a block in which tracing and compiling are errors.

`gptrs.jit.function` calls `refuse_trace` on a miss of the program cache. Kernels that a plan
compiles at a call, for sizes that it has not had, are refused by
`gptrs.kernels.compiler.loaded_object`.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from contextlib import contextmanager

from gptrs.errors import RetraceError
from gptrs.jit.advice import advice
from gptrs.jit.cache import Reason
from gptrs.kernels.compiler.loaded_object import compilation_refused, refuse_compilation

_FIRST = "call it before the block, with arguments of these shapes and dtypes"


@contextmanager
def no_retrace() -> Generator[None]:
    """Inside the block a call that would be traced or compiled raises `RetraceError`.

    The error names the function and the difference to the most similar of its programs. Around the
    steady part of a loop, it proves that no iteration pays for a compilation:

        step(state, batch)  # traced here
        with ptir.no_retrace():
            for batch in batches:
                state = step(state, batch)

    It holds for this thread (and asyncio task) alone, and for all jitted functions that it calls.
    What was traced by then stays: the refused call can be repeated after the block.
    """
    with refuse_compilation():
        yield


def refuse_trace(function: str, why: Reason, signature: inspect.Signature) -> None:
    """Raise `RetraceError` in a block of `no_retrace`: ``function`` would be traced for ``why``."""
    if not compilation_refused():
        return
    reason = str(why)
    raise RetraceError(
        f"{function} would be traced in a block of ptir.no_retrace(): {reason}",
        fix="; or ".join(filter(None, (advice(reason, signature), _FIRST))),
    )
