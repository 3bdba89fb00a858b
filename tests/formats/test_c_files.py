"""Programs written as C: files that a compiler takes, and the same tokens without Python."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array
from gptrs.loading.c_export import export_c
from tests.support.c_programs import aligned, needs_gcc

X = np.sin(np.arange(12, dtype=np.float32)).reshape(3, 4)


def built(directory: Path, name: str) -> Any:
    """A library of what the Makefile compiles."""
    command = [
        "make",
        "-s",
        "CFLAGS=-std=c11 -O1 -march=native -fPIC -ffp-contract=off",
        f"{name}.o",
    ]
    subprocess.run(command, cwd=directory, check=True)
    library = directory / f"{name}.so"
    linked = ["gcc", "-shared", "-fopenmp", "-o", str(library), f"{name}.o", "-lm"]
    subprocess.run(linked, cwd=directory, check=True)
    return ctypes.CDLL(str(library))


def pointers(*arrays: Array) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


@needs_gcc
def test_a_function(tmp_path: Path) -> None:
    weight = Parameter(np.cos(np.arange(20, dtype=np.float32)).reshape(4, 5), "weight")

    @ptir.jit
    def score(x: Any, ids: Any) -> Any:
        y = ptir.softmax(ptir.layer_norm(x @ weight, eps=1e-3))
        return y, ptir.take(y, ids, axis=0)

    lowered = score.lower(ptir.Type.parse("f32[?N,4]"), ptir.Type.parse("si32[2]"))
    lowered.write_c(tmp_path / "c")
    library = built(tmp_path / "c", "score")
    stored = np.fromfile(tmp_path / "c" / "score.weights", np.uint8)
    weights, arena = aligned(stored.size), aligned(1 << 16)
    weights[:] = stored
    found, taken = np.empty((3, 5), np.float32), np.empty((2, 5), np.float32)
    sizes, ids = np.array([3]), np.array([2, 0], np.int32)
    assert library.score_arena_bytes(*pointers(sizes)) < arena.size
    given = pointers(sizes, weights, arena, X, ids, found, taken)
    assert library.score_run(*given) == 0
    y, rows = score(X, ids)
    assert np.allclose(found, y.numpy(), rtol=1e-5, atol=1e-6)
    assert np.allclose(taken, rows.numpy(), rtol=1e-5, atol=1e-6)
    ids[1] = 3
    status = library.score_run(*given)
    library.score_message.restype = ctypes.c_char_p
    message = library.score_message(status).decode()
    assert re.search(r"^take: .*\n  at .*test_c_files\.py:\d+ in test_a_function", message)


def test_what_has_no_c(tmp_path: Path) -> None:
    @ptir.jit
    def spectrum(x: Any) -> Any:
        return ptir.linalg.inv(x) + 1

    lowered = spectrum.lower(X[:, :3])
    with pytest.raises(ArgumentError, match=r"inv of .* at .*test_c_files\.py:\d+"):
        lowered.write_c(tmp_path / "c")
    assert not (tmp_path / "c").exists()


def more(x: Any) -> Any:
    return x + 1


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    lowered = ptir.jit(more).lower(X)
    lowered.write_c(tmp_path / "c")
    with pytest.raises(ArgumentError, match="exists"):
        lowered.write_c(tmp_path / "c")
    lowered.write_c(tmp_path / "c", force=True)


@needs_gcc
@pytest.mark.slow
def test_the_bundled_model_writes_the_same_tokens(tmp_path: Path) -> None:
    model = gptrs.load("stories")
    export_c(model, tmp_path / "c", context=64)
    command = ["make", "-s", "CFLAGS=-std=c11 -O1 -march=native -ffp-contract=off"]
    subprocess.run(command, cwd=tmp_path / "c", check=True)
    for text in ("Once upon a time", "The dog"):
        ids = model.tokenizer.encode(text)
        given = ["./gpt2", "-n", "24", *map(str, ids)]
        done = subprocess.run(given, cwd=tmp_path / "c", capture_output=True, text=True, check=True)
        assert [int(token) for token in done.stdout.split()] == [
            *model.stream_tokens(ids, max_tokens=24)
        ]
    wrong = subprocess.run(["./gpt2", "99999"], cwd=tmp_path / "c", capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "expected at most 64 ids from 0 to 1023" in wrong.stderr
