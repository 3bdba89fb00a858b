"""The faer backend and processes: a warm kernel cache, a cold one shared by many, forks."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.tensor import Tensor

pytestmark = pytest.mark.slow

FIRST_TOKENS = """
import sys
import gptrs
text = gptrs.load("stories").generate("Once upon a time", max_tokens=6)
print(text)
print("numba" in sys.modules)
"""


def start(folder: Path, **settings: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "GPTRS_CACHE_DIR": str(folder), "GPTRS_BACKEND": "faer"}
    return subprocess.Popen(
        [sys.executable, "-c", FIRST_TOKENS],
        env={**environment, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(process: subprocess.Popen[str]) -> list[str]:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert not errors
    return out.splitlines()


def test_a_second_process_needs_no_numba(tmp_path: Path) -> None:
    text, compiled = lines(start(tmp_path))
    assert compiled == "True", "the first one compiles"
    assert lines(start(tmp_path)) == [text, "False"]
    assert lines(start(tmp_path, GPTRS_NUM_THREADS="4")) == [text, "False"]
    assert lines(start(tmp_path, GPTRS_BACKEND="reference"))[0] == text


def test_stats_count_the_kernels(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gptrs", "generate", "Once", "--max-tokens", "6", "--stats"]
    environment = {**os.environ, "GPTRS_CACHE_DIR": str(tmp_path)}

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        whole = [*command, *options]
        return subprocess.run(whole, env=environment, capture_output=True, text=True, check=True)

    stats = json.loads(run("--json").stdout)["stats"]
    assert 10 < stats["kernels"] <= 15
    assert stats["kernels_compiled"] == stats["kernels"]
    assert f"kernels: {stats['kernels']}, all from the cache" in run().stderr


def test_processes_share_a_cold_cache(tmp_path: Path) -> None:
    results = [lines(process) for process in [start(tmp_path) for _ in range(4)]]
    assert len({text for text, _ in results}) == 1


def test_damaged_kernels_are_made_anew(tmp_path: Path) -> None:
    expected = lines(start(tmp_path))
    kernels = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kernels) >= 12
    for number, path in enumerate(kernels):
        data = path.read_bytes()
        path.write_bytes(
            [b"", data[: len(data) // 2], data[:-9] + bytes(9), os.urandom(99)][number % 4]
        )
    assert lines(start(tmp_path)) == expected
    assert lines(start(tmp_path))[1] == "False", "they were kept again"


@ptir.jit(backend="faer")
def scores(x: Any, w: Any) -> Tensor:
    return ptir.softmax(ptir.gelu(x @ w))


X, W = (np.random.default_rng(i).standard_normal((96, 96)).astype(np.float32) for i in (0, 1))


def in_child(queue: Any) -> None:
    queue.put(scores(X, W).numpy())


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_run_what_their_parent_ran(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", "3")
    expected = scores(X, W).numpy()
    context: Any = multiprocessing.get_context(method)
    queue = context.Queue()
    children = [context.Process(target=in_child, args=(queue,)) for _ in range(2)]
    for child in children:
        child.start()
    for _ in children:
        assert np.array_equal(queue.get(timeout=120), expected)
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert np.array_equal(scores(X, W).numpy(), expected), "the parent goes on"
