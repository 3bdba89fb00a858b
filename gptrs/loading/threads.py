"""Thread limit of a block of code, for kernels and for NumPy's matrix products."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext

from gptrs.extras import needed_for
from gptrs.kernels.driver import threads


def limit_threads(count: int) -> AbstractContextManager[object]:
    """At most ``count`` threads inside the block, in kernels and in NumPy's matrix products; 0
    leaves the choice to them."""
    if count == 0:
        return nullcontext()
    with needed_for("limiting the threads of NumPy"):
        # Slow: inspects all loaded libraries.
        from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    stack = ExitStack()
    stack.enter_context(threads.limit_threads(count))
    stack.enter_context(threadpool_limits(limits=count))
    return stack
