"""How much memory a call takes, whatever else goes on in the process.

``tracemalloc`` counts what every thread takes, and a collection of garbage may run finalisers in
the middle: kernels of an earlier test may still be compiled. What the call itself takes it takes
each time, so the least of some calls is what a test may bound.
"""

import tracemalloc
from collections.abc import Callable

__all__ = ["least_peak"]

TIMES = 3


def least_peak(call: Callable[[], object]) -> int:
    """The bytes that Python and NumPy hold at most during ``call``: the least of 3 calls."""
    peaks: list[int] = []
    for _ in range(TIMES):
        tracemalloc.start()
        try:
            call()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(peaks)
