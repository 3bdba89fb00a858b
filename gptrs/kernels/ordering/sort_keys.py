"""Sorting an array of integer keys in place, as source that sort kernels begin with.

    quicksort:                                   radix_sort:
    while there are ranges of keys:              subtract the least key
        at most a block:  sorting network        for each byte that keys have, from the lowest
        else partition by the median of              counting sort by that byte, to the other array
            a sample; go on with both sides

`sort_keys` is a quicksort where the level has instructions that divide vectors, and a radix sort on
others; pairs of a key and a position, of 64 bits each, are always sorted by radix. A range that
was divided badly too often goes to the radix sort too, so that no input takes more than O(n log n).
Short arrays are sorted by insertion on levels without quicksort.

A radix sort keeps the order of equal keys. Quicksort does not; it sorts keys that are equal only if
nothing tells them apart: keys alone, or keys with their positions as low bits.

    keys, spare    arrays of signed integers; ``spare`` has room for the keys and `SLACK` bytes
    low            the bits at the low end of a key that are in order already
"""

from __future__ import annotations

from gptrs.kernels.ordering.sorting_network import block_size

_MEDIAN = """
def median(keys, count, sample, bits):
    size, step = 1 << bits, count >> bits
    for i in range(size):
        sample[i] = keys[i * step]
    sort_block(sample, size, {vector_bits})
    return sample[size // 2]
"""

_QUICKSORT = """
def sort_keys(keys, spare, sample, count, low):
    if count > {block}:
        least, most = extremes(keys, count)
        extent = (int64(most) >> low) - (int64(least) >> low)
        if low == 0 and 0 <= extent < 256:
            counting_sort(keys, count, least)
            return
        if 0 <= extent < 65536:
            radix_sort(keys, spare, keys, spare, count, low, False)
            return
    stack = local_words(192)
    top, first, last, budget = 0, 0, count, 64
    while True:
        size = last - first
        here = shifted(keys, first)
        if size <= {block}:
            sort_block(here, size, {vector_bits})
            size = 0
        elif budget == 0:
            radix_sort(here, spare, here, spare, size, low, False)
            size = 0
        if size == 0:
            if top == 0:
                return
            top -= 3
            first, last, budget = stack[top], stack[top + 1], stack[top + 2]
            continue
        pivot = median(here, size, sample, 4 if size < 2048 else 6)
        split = first + partition(here, spare, size, pivot, {vector_bits})
        budget -= 1
        if split == first:  # the pivot is the least: what equals it comes first
            if pivot == {greatest}:
                first = last
                continue
            first += partition(here, spare, size, {key}(pivot + 1), {vector_bits})
            continue
        if split - first < last - split:
            stack[top], stack[top + 1], stack[top + 2] = split, last, budget
            last = split
        else:
            stack[top], stack[top + 1], stack[top + 2] = first, split, budget
            first = split
        top += 3
"""

_BY_RADIX = """
def sort_keys(keys, spare, sample, count, low):
    if low == 0 and count > 48:
        least, most = extremes(keys, count)
        if 0 <= int64(most) - int64(least) < 256:
            counting_sort(keys, count, least)
            return
    radix_sort(keys, spare, keys, spare, count, low, False)
"""

_RADIX = """
def insertion_sort(keys, places, count, paired):
    for i in range(1, count):
        key, place = keys[i], places[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            if paired:
                places[j] = places[j - 1]
            j -= 1
        keys[j] = key
        if paired:
            places[j] = place


def extremes(keys, count):
    least = most = keys[0]
    for i in range(count):
        least = min(least, keys[i])
        most = max(most, keys[i])
    return least, most


def radix_sort(keys, spare, places, spare_places, count, low, paired):
    if count <= 48:
        insertion_sort(keys, places, count, paired)
        return
    bins = local_words(256)
    least, most = extremes(keys, count)
    least, most = least >> low, most >> low
    extent, shift, moved = int64(most) - int64(least), 0, False
    while shift < 64 and (extent >> shift) != 0:
        for b in range(256):
            bins[b] = 0
        for i in range(count):
            bins[(((keys[i] >> low) - least) >> shift) & 255] += 1
        total = 0
        for b in range(256):
            number = bins[b]
            bins[b] = total
            total += number
        for i in range(count):
            b = (((keys[i] >> low) - least) >> shift) & 255
            at = bins[b]
            bins[b] = at + 1
            spare[at] = keys[i]
            if paired:
                spare_places[at] = places[i]
        keys, spare = spare, keys
        places, spare_places = spare_places, places
        shift += 8
        moved = not moved
    if moved:
        for i in range(count):
            spare[i] = keys[i]
            if paired:
                spare_places[i] = places[i]
"""

_COUNTING = """
def counting_sort(keys, count, least):
    bins = local_words(1024)
    for b in range(1024):
        bins[b] = 0
    for i in range(0, count - 3, 4):
        bins[keys[i] - least] += 1
        bins[keys[i + 1] - least + 256] += 1
        bins[keys[i + 2] - least + 512] += 1
        bins[keys[i + 3] - least + 768] += 1
    for i in range(count // 4 * 4, count):
        bins[keys[i] - least] += 1
    at = 0
    for b in range(256):
        end = at + bins[b] + bins[b + 256] + bins[b + 512] + bins[b + 768]
        for i in range(at, end):
            keys[i] = least + b
        at = end
"""


def sort_keys(bits: int, vector_bits: int) -> str:
    """The functions ``sort_keys(keys, spare, sample, count, low)`` of keys of ``bits`` bits, where
    ``sample`` are 64 more, and
    ``radix_sort(keys, spare, places, spare_places, count, low, paired)``. Quicksort divides vectors
    of ``vector_bits``; with 0 all is sorted by radix.
    """
    if not vector_bits:
        return _RADIX + _COUNTING + _BY_RADIX
    greatest, key = 2 ** (bits - 1) - 1, f"int{bits}"
    quicksort = (_MEDIAN + _QUICKSORT).format(
        block=block_size(bits, vector_bits), greatest=greatest, key=key, vector_bits=vector_bits
    )
    return _RADIX + _COUNTING + quicksort
