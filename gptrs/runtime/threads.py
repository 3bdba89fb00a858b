"""How many threads NumPy's matrix products use."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


def limit_threads(count: int) -> AbstractContextManager[object]:
    """At most ``count`` threads inside the block; 0 leaves the choice to the library."""
    if count == 0:
        return nullcontext()
    # Looks through all loaded libraries.
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    return threadpool_limits(limits=count)
