"""Sorting along an axis: the elements in order, or their positions, or both; all or the first.

    for slot in slots                                   # extent: its own scratch memory
        for tile of lines in the slot's share
            keys[line, i] = key of x[line, i]
            for line in tile: sort keys[line]
            values[line, i] = element of keys[line, i]

    | keys sorted | of                                               | for                  |
    |-------------|--------------------------------------------------|----------------------|
    | alone       | key                                              | all values           |
    | packed      | key << 32 | position, which are all different    | positions, the first |
    | halves      | packed upper half of the key, then the lower     | of keys of 64 bits   |
    | paired      | key, and the position in an array of its own     | the first of these   |

Keys alone that are as wide as the elements are sorted where the values are to be. After the upper
halves of keys have been sorted, runs of equal ones are, by their lower halves. Paired keys serve
where neither form does: positions of more than 32 bits, levels that sort by radix.

Values beside positions are read where the positions say. Without positions they are made of the
keys again; where some are zeros of both signs or NaNs, which a key does not tell apart, those are
copied from the line in its order. So equal elements stay in their order, and the bits are those
of a stable sort of the elements.

Of long lines of which few are wanted, few keys are held at a time
(`gptrs.kernels.ordering.selection`).

Tiles are columns beside each other where those are contiguous in memory, so that what is read and
written together shares cache lines.
"""

from __future__ import annotations

from typing import Literal

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.ordering.keys import KeyType
from gptrs.kernels.ordering.lines import OFFSET, unpacked
from gptrs.kernels.ordering.partition import SLACK
from gptrs.kernels.ordering.selection import BLOCK, SELECT, SELECTED
from gptrs.kernels.ordering.sort_keys import sort_keys
from gptrs.lazy_dataclass import dataclass

SORT_ARGUMENTS = (
    *("x", "values", "order", "scratch", "slot_bytes", "slots", "items", "flip", "kept", "room"),
    *("count", "x_step", "result_step", "columns", "x_column", "result_column"),
    *("tile", "tiles", "in_place", "axes"),
)
"""The argument block of `sort_kernel`, in order; then the triples of `lines`.

Lines have ``count`` elements, of whose ``kept`` first in order the ``values`` and the ``order``
(int64) are stored, with equal strides; at address 0 they are not. ``flip`` is 0, or -1 for the
descending order. ``items`` tiles of ``tile`` lines are shared by ``slots``. ``scratch`` has
``slot_bytes`` for each slot (`Sorting.scratch_bytes`). Lines of more than ``room`` elements are
read by selection. With ``in_place`` = 1 keys are sorted where the values are stored: in tiles of
one line, with a ``result_step`` of 1 (`Sorting.fits`).
"""

Form = Literal["alone", "packed", "halves", "paired"]


@dataclass(frozen=True)
class Sorting:
    """What a kernel sorts: keys of this type, in this form."""

    key: KeyType
    form: Form
    quicksort_bits: int
    """The width of the vectors of quicksort, 0 on levels without it."""

    @property
    def by_radix(self) -> bool:
        """Whether keys are sorted by radix at any length."""
        return self.form == "paired" or self.key.narrow or not self.quicksort_bits

    @property
    def bits(self) -> int:
        """The width of what is sorted."""
        return self.key.bits if self.form == "alone" else 64

    @property
    def fits(self) -> bool:
        """Whether keys are sorted alone and are as wide as elements."""
        return self.form == "alone" and self.key.pointer == self.key.keys

    @property
    def name(self) -> str:
        """The kernel's name."""
        return f"sort_{self.key.name}_{self.form}{'_radix' * self.by_radix}"

    def scratch_bytes(self, tile: int, room: int) -> int:
        """The scratch memory of a slot: ``tile`` lines of ``room`` keys and the spare keys of one;
        the same of positions."""
        arrays = (tile + 1) * (2 if self.form == "paired" else 1)
        return -(-(arrays * room * self.bits // 8 + SLACK) // 64) * 64


def sort_kernel(sorting: Sorting) -> Kernel:
    """The elements of lines in order, or their positions. Arguments: `SORT_ARGUMENTS`; extent:
    ``slots``."""
    return compile_source(_source(sorting), sorting.name)


def _source(s: Sorting) -> str:
    alone = s.form == "alone"
    parts = [
        OFFSET,
        s.key.source(),
        sort_keys(s.bits, 0 if s.by_radix else s.quicksort_bits),
        _FORMS[s.form],
    ]
    parts.append(_loops("read", "count", "x", _READ))
    stored = _STORED_ALONE if alone else _STORED
    parts.append("" if alone else _PLACE[s.form])
    parts += [_loops(f"store_{name}", "kept", "result", body) for name, body in stored.items()]
    parts += [_RESTORE] * s.fits
    parts += [_COPY_AMBIGUOUS] * (alone and s.key.nan is not None)
    parts.append({"alone": "", "halves": _REFINE}.get(s.form, SELECT))
    fields = {
        "stores": "\n                ".join(
            f"if with_{name}:\n                    store_{name}({_LOOP})" for name in stored
        ),
        "keys_there": "shifted(values, to) if in_place else keys" if s.fits else "keys",
        "restore": "restore(here, count, flip)" if s.fits else "pass",
        "refine": f"refine({_REFINED})" if s.form == "halves" else "pass",
        "refined": _REFINED,
        "select": "pass" if s.form in ("alone", "halves") else f"select({SELECTED})",
        "copy": f"copy_ambiguous({_COPIED})" if alone and s.key.nan else "pass",
        "loop": _LOOP,
        "selected": SELECTED,
        "copied": _COPIED,
        "words": unpacked(SORT_ARGUMENTS),
        "name": s.name,
        "pointer": s.key.pointer,
        "keys": "int32s" if s.bits == 32 else "words",
        "paired": str(int(s.form == "paired")),
        "number": s.key.number,
        "greatest": str(s.key.greatest),
        "nan": str(s.key.nan),
        "block": str(BLOCK),
    }
    text = "\n".join([*parts, _KERNEL])
    for name, value in fields.items():
        text = text.replace(f"<{name}>", value)
    return text


_LOOP = (
    "x, at, x_step, x_column, values, order, to, result_step, result_column, "
    "here, places, room, width, count, flip, kept"
)
_COPIED = "x, begins, x_step, count, flip, values, ends, result_step"

_FORMS: dict[Form, str] = {
    "alone": """
def put(keys, places, at, key, place):
    keys[at] = key


def sort_line(keys, spare, places, spare_places, sample, count):
    sort_keys(keys, spare, sample, count, 0)
""",
    "packed": """
def put(keys, places, at, key, place):
    keys[at] = (int64(key) << 32) | place


def key_at(keys, at):
    return keys[at] >> 32


def sort_line(keys, spare, places, spare_places, sample, count):
    sort_keys(keys, spare, sample, count, 32)
""",
    "halves": """
def put(keys, places, at, key, place):
    keys[at] = ((key >> 32) << 32) | place


def sort_line(keys, spare, places, spare_places, sample, count):
    sort_keys(keys, spare, sample, count, 32)
""",
    "paired": """
def put(keys, places, at, key, place):
    keys[at] = key
    places[at] = place


def key_at(keys, at):
    return keys[at]


def sort_line(keys, spare, places, spare_places, sample, count):
    radix_sort(keys, spare, places, spare_places, count, 0, True)
""",
}

_PLACE: dict[Form, str] = {
    **dict.fromkeys(
        ("packed", "halves"),
        "\ndef place_at(keys, places, at):\n    return keys[at] & 4294967295\n",
    ),
    "paired": "\ndef place_at(keys, places, at):\n    return places[at]\n",
}

_RESTORE = """
def restore(keys, count, flip):
    for i in range(count):
        keys[i] = element_of(keys[i], flip)
"""

_REFINE = """
def refine(<refined>):
    first = 0
    while first < count:
        last = first + 1
        while last < count and own[first] >> 32 == own[last] >> 32:
            last += 1
        if last - first > 1:
            for i in range(first, last):
                place = own[i] & 4294967295
                low = key_of(x[begins + place * x_step], flip) & 4294967295
                own[i] = ((low - 2147483648) << 32) | place
            sort_keys(shifted(own, first), spare, sample, last - first, 32)
        first = last
"""
_REFINED = "x, begins, x_step, own, spare, sample, count, flip"

_COPY_AMBIGUOUS = """
def lower_bound(values, ends, result_step, count, flip, key):
    first, last = 0, count
    while first < last:
        middle = (first + last) // 2
        if key_of(values[ends + middle * result_step], flip) < key:
            first = middle + 1
        else:
            last = middle
    return first


def copy_ambiguous(<copied>):
    zero_key, nan_key = key_of(0, flip), key_of(<nan>, flip)
    zero = lower_bound(values, ends, result_step, count, flip, zero_key)
    nan = lower_bound(values, ends, result_step, count, flip, nan_key)
    for i in range(count):
        element = x[begins + i * x_step]
        key = key_of(element, flip)
        if key == zero_key:
            values[ends + zero * result_step] = element
            zero += 1
        elif key == nan_key:
            values[ends + nan * result_step] = element
            nan += 1
"""

_READ = """element = x[at + <place>]
put(here, places, j * room + i, key_of(element, flip), i)
seen |= ambiguous(element)"""
_STORED_ALONE = {"values": "values[to + <place>] = element_of(here[j * room + i], flip)"}
_STORED = {
    "order": "order[to + <place>] = place_at(here, places, j * room + i)",
    "values": """place = place_at(here, places, j * room + i)
values[to + <place>] = x[at + j * x_column + place * x_step]""",
}


def _loops(name: str, count: str, array: str, body: str) -> str:
    """The function ``name`` of the elements of a tile's lines, in the order of ``array`` in
    memory."""
    body = body.replace("\n", "\n                ")
    return f"""
def {name}(<loop>):
    seen = False
    if {array}_step == 1:
        for j in range(width):
            for i in range({count}):
                {body.replace("<place>", f"j * {array}_column + i")}
    else:
        for i in range({count}):
            for j in range(width):
                {body.replace("<place>", f"j * {array}_column + i * {array}_step")}
    return seen
"""


_KERNEL = """
def <name>(arguments, first, last):
<words>
    with_values, with_order, flip = values != 0, order != 0, <number>(flip)
    x, values, order = <pointer>(x), <pointer>(values), words(order)
    sample = local_<keys>(64)
    for slot in range(first, last):
        keys = <keys>(scratch + slot * slot_bytes)
        spare = shifted(keys, 0 if in_place else tile * room)
        places = shifted(spare, <paired> * room)
        spare_places = shifted(places, tile * room)
        for item in range(items * slot // slots, items * (slot + 1) // slots):
            outer = item // tiles
            begin = (item - outer * tiles) * tile
            width = min(tile, columns - begin)
            at = offset(triples, axes, outer, 1) + begin * x_column
            to = offset(triples, axes, outer, 2) + begin * result_column
            here, seen = <keys_there>, False
            if count == room:
                seen = read(<loop>)
            for j in range(width):
                begins = at + j * x_column
                own, own_places = shifted(here, j * room), shifted(places, j * room)
                if count == room:
                    sort_line(own, spare, own_places, spare_places, sample, count)
                    <refine>
                else:
                    <select>
            if in_place:
                <restore>
            else:
                <stores>
            if seen:
                for j in range(width):
                    begins, ends = at + j * x_column, to + j * result_column
                    <copy>
"""
