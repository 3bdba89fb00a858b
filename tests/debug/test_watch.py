"""Output of ``GPTRS_DEBUG`` and ``GPTRS_DUMP`` at each stage from program to plan."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.reference import ReferencePlan
from gptrs.debug.dump import Dump, DumpWarning, Target, dump_to
from gptrs.debug.lowering import ProgramTraced
from gptrs.errors import PtirError, SettingError, VerifyError
from gptrs.ir.parsing import parse
from gptrs.ir.program import Program
from gptrs.passes import pipeline
from gptrs.passes.base import Context

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)
W = np.linspace(-1, 1, 18, dtype=np.float32).reshape(6, 3)


def function(name: str = "attend", **options: Any) -> Any:
    """A function that is traced anew, whose program every stage of the passes changes."""

    @ptir.jit(name=name, backend="faer", **options)
    def attend(x: Any, w: Any) -> Any:
        y = ptir.neg(-x) @ w
        return ptir.softmax(y) * 2 + ptir.softmax(y)

    return attend


def folders(parent: Path) -> list[str]:
    return sorted(entry.name for entry in parent.iterdir())


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_nothing_is_said_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    function()(X, W)
    assert capsys.readouterr() == ("", "")
    assert folders(tmp_path) == []


@pytest.mark.slow
def test_each_level_adds_a_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    function()(X, W)  # its kernels are compiled
    said: list[str] = []
    for level in ("0", "1", "2", "3", "4", "5", "6"):
        monkeypatch.setenv("GPTRS_DEBUG", level)
        attend = function()
        attend(X, W)
        attend(X, W)
        out, err = capsys.readouterr()
        assert out == ""
        said.append(err)
    program, lowered = attend.program(X, W), attend.lowered(X, W)
    assert said[0] == ""
    assert said[1].count("\n") == 1
    line = re.fullmatch(
        r"gptrs: attend at \S+test_watch.py:\d+ in test_each_level_adds_a_part, traced for the"
        r" first call; trace [\d.]+ ms, passes [\d.]+ ms, plan [\d.]+ ms;"
        r" (\d+) → (\d+) instructions; \d+ steps; kernels: \d+ compiled, \d+ loaded\n",
        said[1],
    )
    assert line is not None, said[1]
    assert (int(line[1]), int(line[2])) == (len(program.body), len(lowered.body))
    assert re.search(r"simplify +[\d.]+ +\d+ → \d+ +\S", said[2])
    assert "cancel_negations" in said[2]
    assert "merge softmax" in said[2]
    assert re.search(r"\d+ passes changed nothing \([\d.]+ ms\)", said[2])
    assert str(program) not in said[2]
    for text in (str(program), str(lowered)):
        assert text in said[3]
    assert "native steps" not in said[3]
    assert "native steps" in said[4]
    explained = attend.explain(X, W)
    for source in explained.sources.values():
        assert source in said[4]
    assert len(explained.kernels) > 1
    for name, kernel in explained.kernels.items():
        assert re.search(rf"^define .*@gptrs_{name}\(", kernel.llvm(), re.MULTILINE)
        assert f"gptrs_{name}:" in kernel.assembly()
        assert kernel.llvm() not in said[4]
        assert kernel.llvm() in said[5]
        assert kernel.assembly() not in said[5]
        assert kernel.llvm() in said[6]
        assert kernel.assembly() in said[6]


@pytest.mark.parametrize("level", ["7", "-1", "all"])
def test_there_is_no_other_level(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setenv("GPTRS_DEBUG", level)
    with pytest.raises(SettingError, match=r"GPTRS_DEBUG='.*': expected an integer from 0 to 6"):
        function()(X, W)


def test_a_pass_that_fails_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forget(program: Program, context: Context) -> Program:
        return program.with_body(program.body[1:], program.results)

    monkeypatch.setattr(pipeline, "PIPELINE", (*pipeline.PIPELINE, forget))
    monkeypatch.setenv("GPTRS_DEBUG", "3")
    monkeypatch.setenv("GPTRS_DUMP", str(tmp_path))
    attend = function()
    with pytest.raises(VerifyError, match="pass forget"):
        attend(X, W)
    err = capsys.readouterr().err
    assert "; the passes failed\n" in err
    assert "attend, traced" in err
    (folder,) = tmp_path.iterdir()
    written = names(folder)
    assert "00_traced.py" in written
    assert any("simplify" in name for name in written)
    assert "plan.txt" not in written


def test_a_function_that_fails_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPTRS_DEBUG", "4")
    with pytest.raises(PtirError):
        function()(X, X)
    err = capsys.readouterr().err
    assert re.search(r"traced for the first call; the trace failed\n", err)


def test_dumped_programs_run_to_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_DUMP", str(tmp_path))
    attend = function()
    expected = attend(X, W).numpy()
    assert folders(tmp_path) == ["0001_attend"]
    folder = tmp_path / "0001_attend"
    files = sorted(folder.glob("*.py"))
    assert [f.name for f in files][:2] == ["00_traced.py", "01_simplify.py"]
    assert files[-1].name == "lowered.py"
    assert len(files) > 4
    for file in files:
        text = file.read_text()
        read = parse(text)
        assert str(read) == text
        (result,) = ReferencePlan(read).run([X, W], {})
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
        scope: dict[str, Any] = {}
        exec(compile(text, file, "exec", dont_inherit=True), scope)
        again = ptir.jit(scope["attend"])
        np.testing.assert_allclose(again(X, W).numpy(), expected, rtol=1e-5, atol=1e-6)
    texts = [file.read_text() for file in files]
    assert texts[0] == str(attend.program(X, W))
    assert texts[-2] == texts[-1] == str(attend.lowered(X, W))
    assert all(a != b for a, b in pairwise(texts[:-1]))


@pytest.mark.slow
def test_the_plan_and_kernels_that_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_DUMP", str(tmp_path))
    attend = function()
    attend(X, W)
    folder = tmp_path / "0001_attend"
    assert (folder / "plan.txt").read_text() == f"{attend.explain(X, W)}\n"
    sources = attend.explain(X, W).sources
    assert {f.stem: f.read_text() for f in (folder / "kernels").glob("*.py")} == sources
    kernels = attend.explain(X, W).kernels
    assert set(sources) < set(kernels)
    assert {f.stem: f.read_text() for f in (folder / "kernels").glob("*.ll")} == {
        name: kernel.llvm() for name, kernel in kernels.items()
    }
    assert {f.stem: f.read_text() for f in (folder / "kernels").glob("*.s")} == {
        name: kernel.assembly() for name, kernel in kernels.items()
    }
    (name,) = sources
    scope: dict[str, Any] = {}
    exec((folder / "kernels" / f"{name}.py").read_text(), scope)
    y = np.linspace(0, 1, 12, dtype=np.float32)
    out = y.copy()  # the product, which the loops overwrite
    scope[f"{name}_parallel"](out)
    np.testing.assert_allclose(out, y * 2 + y, rtol=1e-6)


def test_statistics_of_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_DUMP", str(tmp_path))
    function()(X, W)
    assert "passes.jsonl" not in names(tmp_path / "0001_attend")
    monkeypatch.setenv("GPTRS_PASS_STATS", "1")
    attend = function()
    attend(X, W)
    folder = tmp_path / "0002_attend"
    rows = [json.loads(line) for line in (folder / "passes.jsonl").read_text().splitlines()]
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    assert {row["program"] for row in rows} == {"attend"}
    assert [row["pass"] for row in rows[:3]] == [ran.name for ran in attend.passes(X, W)[:3]]
    assert rows[0]["instructions_before"] == len(attend.program(X, W).body)
    assert rows[-1]["instructions_after"] == len(attend.lowered(X, W).body)
    assert rows[0]["rewrites"]["cancel_negations"] == 1
    assert all(row["ms"] >= 0 for row in rows)
    numbered = {n for n in names(folder) if re.match(r"\d+_", n) and n != "00_traced.py"}
    assert {row["file"] for row in rows if row["changed"]} == numbered
    assert {row["file"] for row in rows if not row["changed"]} == {None}


def test_the_mode_compile_leaves_out_what_is_between(tmp_path: Path) -> None:
    with dump_to(tmp_path / "deep" / "down", "compile"):
        function()(X, W)
    function()(X, W)
    (folder,) = (tmp_path / "deep" / "down").iterdir()
    written = [name for name in names(folder) if not name.startswith("kernels/")]
    assert written == ["00_traced.py", "lowered.py", "plan.txt"]
    assert (folder / "kernels").is_dir()


def test_names_are_safe(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    with dump_to(inside):
        for name in ("../up/and away", "été", "...", "n" * 300):
            function(name)(X, W)
    assert [f.partition("_")[2] for f in folders(inside)] == [
        "up_and_away",
        "t",
        "program",
        "n" * 60,
    ]
    assert folders(tmp_path) == ["inside"]


def test_a_folder_that_cannot_be_written_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("GPTRS_DUMP", str(file))
    attend = function()
    with pytest.warns(DumpWarning, match=f"{re.escape(repr(str(file)))}: File exists"):
        result = attend(X, W)
    attend(X[:2], W)  # warnings are errors here, so there is no second one
    np.testing.assert_array_equal(result.numpy(), function()(X, W).numpy())


def test_files_are_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = function().program(X, W)
    dump = Dump(Target(tmp_path, "all"), "f")
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(Path, "replace", full)
        with pytest.warns(DumpWarning, match="No space left"):
            dump.hear(ProgramTraced(program, 0.0))
    dump.hear(ProgramTraced(program, 0.0))  # given up
    assert names(tmp_path) == []


@pytest.mark.slow
def test_threads_and_processes_share_a_folder(tmp_path: Path) -> None:
    def claim(number: int) -> None:
        Dump(Target(tmp_path, "all"), f"thread{number % 3}")

    code = (
        "import sys; from pathlib import Path; from gptrs.debug.dump import Dump, Target\n"
        "for _ in range(40): Dump(Target(Path(sys.argv[1]), 'all'), f'process{sys.argv[2]}')"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)]) for n in (1, 2)
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(claim, range(200)))
    assert [process.wait(60) for process in processes] == [0, 0]
    numbers = [int(name.partition("_")[0]) for name in folders(tmp_path)]
    assert numbers == list(range(1, 281))


def test_threads_trace_at_once(tmp_path: Path) -> None:
    with dump_to(tmp_path):
        made = [function(f"f{n}") for n in range(6)]
        contexts = [copy_context() for _ in made]
        with ThreadPoolExecutor(6) as pool:
            running = [
                pool.submit(context.run, each, X, W)
                for context, each in zip(contexts, made, strict=True)
            ]
            results = [future.result().numpy() for future in running]
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    assert sorted(name.partition("_")[2] for name in folders(tmp_path)) == [
        f"f{n}" for n in range(6)
    ]
    for folder in tmp_path.iterdir():
        text = (folder / "lowered.py").read_text()
        assert parse(text).name == folder.name.partition("_")[2]


@pytest.mark.slow
def test_a_crash_leaves_the_programs_before_it(tmp_path: Path) -> None:
    code = (
        "import os, sys; from gptrs import ptir\n"
        "from gptrs.backends.reference import ReferenceBackend\n"
        "ReferenceBackend.plan = lambda *_, **__: os._exit(7)\n"
        "ptir.jit(lambda x: x * 1.0, backend='reference', name='f')(2.0)"
    )
    environment = os.environ | {"GPTRS_DUMP": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, timeout=60, check=False)
    assert done.returncode == 7
    assert {"00_traced.py", "01_simplify.py", "lowered.py"} <= set(names(tmp_path / "0001_f"))
