"""The number of threads (affinity, control groups, settings), and sharing of work among them."""

from __future__ import annotations

import math
import os
from itertools import count
from pathlib import Path
from threading import Barrier
from threading import enumerate as enumerate_threads

import pytest

from gptrs import events
from gptrs.kernels.driver import threads
from gptrs.kernels.driver.threads import available_cores, cgroup_quota, spread, thread_count


def test_thread_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("GPTRS_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "recent_cores", lambda: 6)
    assert thread_count() == 6
    for text, expected in {"4": 4, "3,2": 3, "99": 6, "0": 6, "many": 6, "": 6}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert thread_count() == expected
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("GPTRS_NUM_THREADS", "9")
    assert thread_count() == 9
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "250000 100000"}, 2.5),
        ("0::/not/here\n", {"cpu.max": "150000 100000"}, 1.5),
        ("0::/a\n", {"a/cpu.max": "max 100000"}, math.inf),
        ("1:cpu,cpuacct:/a\n0::/\n", {"cpu,cpuacct/a/cpu.cfs_quota_us": "300000"}, 3.0),
        ("1:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1"}, math.inf),
        ("1:cpuset:/a\n", {"cpuset/a/cpu.max": "1 1"}, math.inf),
        ("0::/a\n", {"a/cpu.max": "what?"}, math.inf),
    ],
)
def test_cgroup_quota(
    tmp_path: Path, membership: str, files: dict[str, str], expected: float
) -> None:
    (tmp_path / "membership").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.name == "cpu.cfs_quota_us":
            (path.parent / "cpu.cfs_period_us").write_text("100000")
    assert cgroup_quota(tmp_path / "membership", tmp_path / "cgroup") == expected
    assert cgroup_quota(tmp_path / "none", tmp_path / "cgroup") == math.inf


class TestSpread:
    @pytest.mark.parametrize("threads", [1, 3])
    def test_every_item_once_each_thread_as_one(self, threads: int) -> None:
        heard: list[object] = []
        done: list[tuple[int, int]] = []

        def work(item: int) -> None:
            events.emit(item)
            done.append((item, thread_count()))

        with events.listen(heard.append):
            spread(work, range(50), threads)
        assert sorted(done) == [(item, 1) for item in range(50)]
        assert sorted(map(str, heard)) == sorted(map(str, range(50))), "listeners hear threads too"

    def test_items_are_done_at_the_same_time(self) -> None:
        both = Barrier(2, timeout=60)
        spread(lambda _: both.wait(), range(2), 2)

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_an_error_ends_all(self, error: type[BaseException]) -> None:
        before = len(enumerate_threads())

        def work(item: int) -> None:
            if item == 3:
                raise error("here")

        with pytest.raises(error, match="here"):
            spread(work, count(), 2)
        assert len(enumerate_threads()) == before, "nobody is left behind"
