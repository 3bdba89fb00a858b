"""Memory of KV caches: zeroed, exclusive, reused from caches that were freed."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gptrs
from gptrs import large_pages
from gptrs.ir.types import Array
from gptrs.nn import cache_memory
from gptrs.nn.cache import KVCache
from gptrs.nn.cache_memory import LEAST, MOST, zeros
from tests.support.models import random_tokens, tiny_gpt2

FLOATS = LEAST // 4
KEPT = cache_memory._kept  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    KEPT.clear()
    yield
    KEPT.clear()


def left(*sizes: int) -> list[int]:
    """The addresses of arrays of so many floats, which were written and dropped, in that order."""
    arrays = [zeros((size,)) for size in sizes]
    found = [array.ctypes.data for array in arrays]
    while arrays:
        arrays.pop(0)[:] = np.nan
    return found


def test_what_is_dropped_serves_again_and_is_zero() -> None:
    first, second = left(FLOATS, FLOATS + 1)
    again = zeros((2, FLOATS // 2))
    assert (again.ctypes.data, again.shape, again.dtype) == (first, (2, FLOATS // 2), np.float32)
    assert not again.any()
    other = zeros((FLOATS,))  # less than what is there
    assert other.ctypes.data == second
    assert not other.any()
    third = zeros((FLOATS,))
    assert not np.shares_memory(third, again)
    assert not np.shares_memory(third, other)


def test_a_view_keeps_it() -> None:
    array = zeros((3, FLOATS))
    view = array[1:]
    del array
    view[:] = 5
    assert not np.shares_memory(zeros((3, FLOATS)), view)
    assert (view == 5).all()


def test_what_is_too_small_goes_and_two_pieces_stay() -> None:
    left(FLOATS, FLOATS, FLOATS, FLOATS)
    assert len(KEPT) == 2
    array = zeros((2 * FLOATS,))
    assert not KEPT
    assert not array.any()


@pytest.mark.parametrize("size", [0, 1, FLOATS - 1, MOST // 4 + 1])
def test_other_sizes_are_not_kept(size: int) -> None:
    assert zeros((size,)).shape == (size,)
    assert not KEPT


def test_without_advice_it_works_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(large_pages.mmap, "MADV_HUGEPAGE", raising=False)
    monkeypatch.delattr(large_pages.mmap, "MADV_FREE", raising=False)
    (first,) = left(FLOATS)
    again = zeros((FLOATS,))
    assert again.ctypes.data == first
    assert not again.any()


def test_no_room_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(large_pages.mmap, "mmap", full)
    with pytest.raises(MemoryError, match=f"no {LEAST} bytes for a cache of keys and values"):
        zeros((FLOATS,))


def test_caches_are_made_and_dropped_in_many_threads() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            array = zeros((FLOATS + number,))
            if array.any():
                wrong.append(number)
            array[:] = number
            if not (array == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.slow
def test_an_interpreter_ends_quietly_whatever_it_drops_first() -> None:
    code = f"""if True:
        import mmap
        from gptrs import large_pages
        from gptrs.nn import cache_memory
        kept = [cache_memory.zeros(({FLOATS},)) for _ in range(3)]
        kept.append(kept)
        for module in (mmap, cache_memory, large_pages):
            vars(module).update(dict.fromkeys(vars(module)))
    """
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_text_after_another_one(tmp_path: Path) -> None:
    """The second text's cache lies where the first one's was, while a third one is held."""
    place = tiny_gpt2(tmp_path, n_positions=16384)
    model = gptrs.load(place).module
    tokens = random_tokens(1, 9)

    def text(tokens: Array) -> tuple[Array, KVCache]:
        logits, cache = model(tokens, model.init_cache(np.zeros(1, np.int32), 16384), logits="all")
        return np.asarray(logits).copy(), cache

    expected, held = text(tokens)
    assert np.asarray(held.keys).nbytes >= LEAST
    before = np.asarray(held.keys).copy()
    _, cache = text(random_tokens(1, 9, seed=1))
    at = np.asarray(cache.keys).ctypes.data
    np.asarray(cache.values)[:] = np.nan
    del cache
    found, cache = text(tokens)
    assert at in {np.asarray(each).ctypes.data for each in (cache.keys, cache.values)}
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.asarray(held.keys), before)
