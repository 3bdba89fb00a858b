"""Slabs for packed weights: allocation, exclusive pieces, release."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from gptrs import large_pages
from gptrs.backends.faer.slabs import SLAB_BYTES, Slabs
from gptrs.ir.types import Array

LINE = 64
MB = 2**20


def address(piece: Array) -> int:
    return piece.ctypes.data


def overlap(a: Array, b: Array) -> bool:
    return address(a) < address(b) + b.size and address(b) < address(a) + a.size


@pytest.mark.slow
def test_pieces_begin_lines_and_do_not_overlap() -> None:
    source = Slabs()
    pieces = [source.allocate(size) for size in (1, 64, 65, 3 * MB, 100, 0, SLAB_BYTES - MB, 7)]
    assert [piece.size for piece in pieces] == [1, 64, 65, 3 * MB, 100, 0, SLAB_BYTES - MB, 7]
    assert all(address(piece) % LINE == 0 and piece.flags.writeable for piece in pieces)
    for i, piece in enumerate(pieces):
        piece[:] = i
    assert all((piece == i).all() for i, piece in enumerate(pieces))


def test_small_pieces_share_a_slab_and_a_large_one_has_its_own() -> None:
    source = Slabs()
    first, second = source.allocate(3 * MB), source.allocate(5 * MB)
    assert address(second) == address(first) + 3 * MB
    assert first.ctypes.data % (2 * MB) == 0
    large = source.allocate(SLAB_BYTES + 1)
    assert not overlap(large, first)
    assert address(source.allocate(LINE)) == address(second) + 5 * MB


def test_a_place_serves_again() -> None:
    source = Slabs()
    first, second = source.allocate(3 * MB), source.allocate(MB)
    at = address(first)
    view = first[MB:].view(np.float32)
    del first
    assert not overlap(source.allocate(3 * MB), view)  # a view keeps the whole piece
    del view
    assert address(source.allocate(2 * MB)) == at
    assert address(second) == at + 3 * MB


def test_a_slab_goes_with_its_last_piece() -> None:
    source = Slabs()
    first, second = source.allocate(MB), source.allocate(MB)
    (slab,) = source._slabs  # pyright: ignore[reportPrivateUsage]
    del first
    assert slab() is not None
    del second
    assert slab() is None
    third = source.allocate(MB)
    assert source._slabs != [slab]  # pyright: ignore[reportPrivateUsage]
    assert third.size == MB


def resident() -> int:
    """Bytes of memory that this process has from the system."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_the_system_gets_the_pages_of_a_piece_at_once() -> None:
    source = Slabs()
    kept, piece = source.allocate(MB), source.allocate(48 * MB)
    piece[:] = kept[:] = 1
    before = resident()
    del piece
    assert before - resident() > 40 * MB
    assert (kept == 1).all()


def test_pieces_are_taken_and_dropped_in_many_threads() -> None:
    source = Slabs()
    wrong: list[int] = []

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        held: list[Array] = []
        for _ in range(200):
            piece = source.allocate(int(rng.integers(1, 40_000)))
            piece[:] = number
            held.append(piece)
            if len(held) > 8:
                old = held.pop(int(rng.integers(8)))
                if not (old == number).all():
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_room_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="packed weights"):
        Slabs().allocate(2**60)


@pytest.mark.slow
def test_an_interpreter_ends_quietly_whatever_it_drops_first() -> None:
    code = """if True:
        import mmap
        from gptrs.backends.faer.slabs import Slabs
        source = Slabs()
        kept = [source.allocate(100_000) for _ in range(3)]
        kept.append(kept)
        vars(mmap).update(dict.fromkeys(vars(mmap)))
        import gptrs.backends.faer.slabs, gptrs.large_pages
        for module in (gptrs.backends.faer.slabs, gptrs.large_pages):
            vars(module).update(dict.fromkeys(vars(module)))
    """
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
def test_without_advice_it_works_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(large_pages.mmap, "MADV_HUGEPAGE", raising=False)
    monkeypatch.delattr(large_pages.mmap, "MADV_DONTNEED", raising=False)
    source = Slabs()
    piece = source.allocate(MB)
    piece[:] = 3
    at, gone = address(piece), weakref.ref(piece)
    other = source.allocate(MB)
    del piece
    gc.collect()
    assert gone() is None
    assert address(source.allocate(MB)) == at
    assert not overlap(other, source.allocate(MB))
