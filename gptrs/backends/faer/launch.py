"""The launch of a binding: what native calls need to run it without Python.

Only a binding whose steps are all native and whose results are all written by kernels has one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.backends.base import Launch
from gptrs.backends.faer.arena import Arena, ArenaPool
from gptrs.backends.faer.binding import ARENA, WRITEABLE, Bound
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.polling import poll_address


def launch_of(bound: Bound, free: list[Any], arenas: ArenaPool) -> Launch | None:
    """The launch of ``bound``, which waits in ``free``; None if Python has a part in its runs."""
    native = current_driver().native()
    if native is None or bound.results is None:
        return None
    if any(wanted & WRITEABLE for _, _, wanted in bound.inputs):  # donated: the handle changes
        return None
    outputs = [(shape, dtype) for _, _, shape, dtype in bound.outputs]
    order = bound.table.order(0, bound.table.count, bound.status.address, bound.threads)
    addresses = np.asarray(bound.addresses).ctypes.data
    return Launch(
        bound=bound,
        free=free,
        arenas=arenas.free if bound.arena_bytes else None,
        arena_type=Arena,
        arena_bytes=bound.arena_bytes,
        arena_address=addresses + 8 * ARENA,
        arena_relocations=_words(bound, addresses, ARENA),
        lease=bound.lease if bound.weights else None,
        inputs=[(number, wanted) for _, number, wanted in bound.inputs],
        outputs=outputs,
        relocations=[
            (source, *word)
            for source, (buffer, *_) in enumerate([*bound.inputs, *bound.outputs])
            for word in _words(bound, addresses, buffer)
        ],
        results=list(bound.results(range(len(outputs)))),
        driver=native,
        order=order[1],
        status=bound.status.address,
        threads=bound.threads,
        poll=poll_address() if bound.polls else 0,
        held=(bound, order),
    )


def _words(bound: Bound, addresses: int, buffer: int) -> list[tuple[int, int]]:
    """The words that hold addresses in ``buffer`` and their offsets, with that in
    ``bound.addresses``."""
    base = bound.argument_blocks.ctypes.data
    words, offsets = bound.relocations[buffer]
    found = [(base + 8 * w, o) for w, o in zip(words.tolist(), offsets.tolist(), strict=True)]
    return [(addresses + 8 * buffer, 0), *found]
