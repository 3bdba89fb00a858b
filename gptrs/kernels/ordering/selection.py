"""The first few of a long line in order, as source that sort kernels contain.

    best = the first ``room`` keys of the line, sorted
    for block of 128 elements:
        if the least key of the block < the last of the best:      # vectors
            append the keys that are less than it to the best
            if some have come: sort the best, keep the first
    sort the best

Each element is read once. A key that equals the last of the best comes after it and is no better:
of equal elements the first ones are chosen.
"""

from __future__ import annotations

BLOCK = 128
"""Elements that selection looks at together."""


def selection_room(count: int, kept: int) -> int:
    """How many keys of a line of ``count`` are held at a time: all, or by selection as many as are
    kept twice, and two blocks."""
    room = 2 * kept + 2 * BLOCK
    return room if 2 * room <= count else count


SELECTED = (
    "x, begins, x_step, count, flip, kept, room, own, spare, own_places, spare_places, sample"
)
"""The arguments of ``select``: a line of x, and the array of keys, its own."""

SELECT = """
def select(<selected>):
    for i in range(room):
        put(own, own_places, i, key_of(x[begins + i * x_step], flip), i)
    sort_line(own, spare, own_places, spare_places, sample, room)
    filled, limit = kept, key_at(own, kept - 1)
    full = kept + max(kept, 16)  # to sort a few is cheap, and a lower limit saves more
    for block in range(room, count, <block>):
        size = min(<block>, count - block)
        here, least = begins + block * x_step, <number>(<greatest>)
        if x_step == 1:
            for i in range(size):
                least = min(least, key_of(x[here + i], flip))
        else:
            for i in range(size):
                least = min(least, key_of(x[here + i * x_step], flip))
        if least >= limit:
            continue
        for i in range(size):
            key = key_of(x[here + i * x_step], flip)
            put(own, own_places, filled, key, block + i)
            filled += 1 if key < limit else 0
        if filled >= full:
            sort_line(own, spare, own_places, spare_places, sample, filled)
            filled, limit = kept, key_at(own, kept - 1)
    sort_line(own, spare, own_places, spare_places, sample, filled)
"""
