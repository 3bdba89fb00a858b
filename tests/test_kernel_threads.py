"""How many threads are used: affinity, control groups and settings."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from gptrs.kernels import threads
from gptrs.kernels.threads import available_cores, cgroup_quota, thread_count


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
