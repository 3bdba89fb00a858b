"""Python's garbage collector during imports and traces: thresholds, generations, forks."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Generator

import pytest

from gptrs import collector, ptir
from gptrs.collector import rare_collections


@pytest.fixture(autouse=True)
def thresholds() -> Generator[tuple[int, int, int]]:
    before = gc.get_threshold()
    frozen = gc.get_freeze_count()
    gc.unfreeze()  # what the session's start froze: `tests.conftest`
    gc.set_threshold(700, 10, 10)
    yield (700, 10, 10)
    gc.set_threshold(*before)
    gc.enable()
    if frozen:
        gc.freeze()


class Node:
    """An object that refers to itself: only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


def test_thresholds_are_restored(thresholds: tuple[int, int, int]) -> None:
    with rare_collections():
        assert gc.get_threshold()[0] > 100_000
        with rare_collections():
            pass
        assert gc.get_threshold()[0] > 100_000
    assert gc.get_threshold() == thresholds


def test_thresholds_are_restored_after_an_error(thresholds: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="inside"), rare_collections():
        raise ValueError("inside")
    assert gc.get_threshold() == thresholds


def test_thresholds_set_inside_stay() -> None:
    with rare_collections():
        gc.set_threshold(123, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)


@pytest.mark.parametrize("first", [0, 2**22])
def test_thresholds_of_users_who_want_few_collections_stay(first: int) -> None:
    gc.set_threshold(first, 10, 10)
    with rare_collections():
        assert gc.get_threshold() == (first, 10, 10)
    assert gc.get_threshold() == (first, 10, 10)


def test_a_disabled_collector_is_left_alone(thresholds: tuple[int, int, int]) -> None:
    gc.disable()
    with rare_collections():
        assert gc.get_threshold() == thresholds
    assert not gc.isenabled()


def test_many_young_objects_become_old_without_a_collection() -> None:
    runs: list[str] = []
    gc.callbacks.append(lambda phase, _: runs.append(phase))
    try:
        gc.collect()
        runs.clear()
        with rare_collections():
            garbage = weakref.ref(Node())
            kept = [[number] for number in range(50_000)]
        few = gc.get_count()[0]
        assert runs == []
    finally:
        gc.callbacks.pop()
    assert few < 1_000
    assert garbage() is not None  # until a full collection
    gc.collect()
    assert garbage() is None
    assert len(kept) == 50_000


def test_young_objects_are_looked_at_where_promotions_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector, "_LIMIT", 60_000)
    gc.collect()
    kept: list[list[int]] = []
    left: list[bool] = []
    for _ in range(3):
        with rare_collections():
            garbage = weakref.ref(Node())
            kept += [[number] for number in range(50_000)]
        kept += [[number] for number in range(1_000)]
        left.append(garbage() is not None)
    assert left == [True, False, False]


def test_objects_that_the_user_froze_stay_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with rare_collections():
            kept = [[number] for number in range(50_000)]
        assert gc.get_freeze_count() == pytest.approx(frozen, rel=0.01)  # less what was freed
        assert len(kept) == 50_000
    finally:
        gc.unfreeze()


def test_a_forked_child_has_the_thresholds_of_before(thresholds: tuple[int, int, int]) -> None:
    state = collector.Collector()
    state.hold_off()
    state.after_fork()
    assert gc.get_threshold() == thresholds
    state.resume()
    assert gc.get_threshold() == thresholds


def test_traces_hold_it_off(thresholds: tuple[int, int, int]) -> None:
    seen: list[int] = []

    @ptir.jit(backend="reference")
    def f(x: ptir.Tensor) -> ptir.Tensor:
        seen.append(gc.get_threshold()[0])
        return x + 1

    f(ptir.tensor([1.0]))
    assert seen[0] > 100_000
    assert gc.get_threshold() == thresholds
