"""Memory of large results: exclusive, reused from results that were freed, within a limit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import result_memory
from gptrs.backends.faer.result_memory import ALIGNED, LEAST, LINE, empty

FLOATS = LEAST // 4
F32 = np.dtype(np.float32)
KEPT = result_memory._kept  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    KEPT.clear()
    yield
    KEPT.clear()


def left(*sizes: int) -> list[int]:
    """The addresses of arrays of so many floats, dropped in that order."""
    arrays = [empty((size,), F32) for size in sizes]
    found = [array.ctypes.data for array in arrays]
    while arrays:
        arrays.pop(0)
    return found


def test_a_freed_result_serves_the_next_one_that_fits() -> None:
    small, large = left(FLOATS, 3 * FLOATS)
    again = empty((2, FLOATS), F32)  # less than the larger one
    assert (again.ctypes.data, again.shape, again.dtype) == (large, (2, FLOATS), F32)
    other = empty((FLOATS // 2,), np.dtype(np.float64))
    assert other.ctypes.data == small
    assert other.flags.writeable
    third = empty((FLOATS,), F32)
    assert not np.shares_memory(third, again)
    assert not np.shares_memory(third, other)


def test_results_begin_at_a_cache_line() -> None:
    for size in (ALIGNED, ALIGNED + 4, LEAST - 4):
        array = empty((size // 4,), F32)
        assert array.ctypes.data % LINE == 0
        assert (array.shape, array.dtype, array.flags.writeable) == ((size // 4,), F32, True)


def test_memory_that_is_mostly_too_large_waits() -> None:
    left(3 * FLOATS)
    array = empty((FLOATS,), F32)
    assert len(KEPT) == 1
    assert array.shape == (FLOATS,)


def test_a_view_keeps_it() -> None:
    array = empty((3, FLOATS), F32)
    view = array[1:]
    del array
    view[:] = 5
    assert not np.shares_memory(empty((3, FLOATS), F32), view)
    assert (view == 5).all()


def test_what_is_kept_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_RESULT_CACHE_BYTES", str(2 * LEAST))
    left(FLOATS, FLOATS, FLOATS)
    assert len(KEPT) == 2
    monkeypatch.setenv("GPTRS_RESULT_CACHE_BYTES", "0")
    left(FLOATS)
    assert not KEPT


@pytest.mark.parametrize("shape", [(), (0,), (FLOATS - 1,)])
def test_small_results_are_not_kept(shape: tuple[int, ...]) -> None:
    assert empty(shape, F32).shape == shape
    assert not KEPT


def test_results_of_calls_are_reused_and_held_ones_are_not() -> None:
    @ptir.jit
    def twice(x: ptir.Tensor) -> ptir.Tensor:
        return x * 2.0

    x = np.arange(FLOATS, dtype=np.float32)
    held = twice(x).numpy()
    place = twice(x).numpy().ctypes.data
    for _ in range(5):  # however the calls are answered
        assert twice(x + 1).numpy().ctypes.data == place
    np.testing.assert_array_equal(held, x * 2)


def test_results_are_made_and_dropped_in_many_threads() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(10):
            array = empty((FLOATS + number,), F32)
            array[:] = number
            if not (array == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_has_memory_of_its_own() -> None:
    left(FLOATS)
    child = os.fork()
    if not child:
        empty((FLOATS,), F32)[:] = 1
        os._exit(0)
    array = empty((FLOATS,), F32)
    array[:] = 2
    assert os.waitpid(child, 0)[1] == 0
    assert (array == 2).all()


@pytest.mark.slow
def test_an_interpreter_ends_quietly_whatever_it_drops_first() -> None:
    code = f"""if True:
        import mmap
        import numpy as np
        from gptrs import large_pages
        from gptrs.backends.faer import result_memory
        kept = [result_memory.empty(({FLOATS},), np.dtype(np.float32)) for _ in range(3)]
        kept.append(kept)
        for module in (mmap, result_memory, large_pages):
            vars(module).update(dict.fromkeys(vars(module)))
    """
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
