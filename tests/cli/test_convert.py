"""``gptrs convert`` and ``gptrs info`` in this process."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import numpy as np
import pytest

from gptrs.formats.archive import write_archive
from gptrs.formats.checkpoint import CheckpointFile
from gptrs.loading.convert import convert
from gptrs.params import base_param_id
from tests.support.cli import COMMAND, Cli, in_process
from tests.support.models import load_arrays, tiny_gpt2

PATIENCE = 120


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    runtime = {"functional_overrides": {"softmax": "force=portable"}}
    return tiny_gpt2(tmp_path / "model", runtime=runtime, note="x" * 100)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys)


class TestConvert:
    def test_it_says_what_was_written(self, cli: Cli, tmp_path: Path, directory: Path) -> None:
        path = tmp_path / "x.gchk"
        done = cli("convert", str(directory), str(path))
        size = sum(a.nbytes for a in load_arrays(directory / "model.safetensors").values())
        said = f"{path}: 28 tensors, {size / 1000:.1f} kB, tokenizer.json\n"
        assert (done.code, done.out, done.err) == (0, said, "")
        assert CheckpointFile.open(path).kind == "gpt"

    @pytest.mark.slow
    def test_its_options(self, cli: Cli, tmp_path: Path, directory: Path) -> None:
        out = str(tmp_path / "out.v2")
        arguments = ["--to", "directory", "--dtype", "bf16", "--shard-size", "0.02MB"]
        assert cli("convert", str(directory), out, *arguments).code == 0
        first = min((tmp_path / "out.v2").glob("model-*.safetensors"))
        assert {str(array.dtype) for array in load_arrays(first).values()} == {"bfloat16"}
        again = cli("convert", str(directory), out)
        assert (again.code, again.out) == (1, "")
        assert again.err.startswith(f"error: {out} is there already\n")
        assert cli("convert", str(directory), out, "--force").code == 0
        archive, config = str(tmp_path / "x.gten"), str(directory / "config.json")
        assert cli("convert", str(directory), archive).code == 0
        assert cli("convert", archive, str(tmp_path / "y.gchk"), "--config", config).code == 0

    @pytest.mark.slow
    def test_what_is_left_out_is_said(self, cli: Cli, tmp_path: Path) -> None:
        from tests.support.image_models import resnet

        resnet(tmp_path / "model")
        done = cli("convert", str(tmp_path / "model"), str(tmp_path / "x.gten"))
        assert done.code == 0
        assert "that the model does not read, such as 'resnet." in done.err

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [
            (["a"], "DST"),
            (["a", "b", "c"], "c"),
            (["a", "b", "--to", "zip"], "'zip'"),
            (["a", "b", "--dtype", "f64"], "'f64'"),
            (["a", "b", "--shard-size", "many"], "--shard-size is 'many', expected a size"),
            (["a", "b", "--shard-size", "0"], "--shard-size is '0', expected a size"),
        ],
        ids=lambda value: " ".join(value),
    )
    def test_wrong_usage(self, cli: Cli, arguments: list[str], named: str) -> None:
        done = cli("convert", *arguments)
        assert (done.code, done.out) == (2, "")
        assert named in done.err
        assert done.err.count("\n") == 1

    @pytest.mark.slow
    def test_a_terminal_shows_progress(self, tmp_path: Path, directory: Path) -> None:
        ours, theirs = pty.openpty()
        command = [COMMAND, "convert", str(directory), str(tmp_path / "x.gchk")]
        env = os.environ | {"TERM": "xterm"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=env) as process:
            os.close(theirs)
            shown = b""
            while b"\x1b[?25h" not in shown:  # until the cursor is there again
                shown += os.read(ours, 1 << 12)
            assert process.wait(PATIENCE) == 0
        os.close(ours)
        assert b"writing" in shown


class TestInfo:
    def test_tables(self, cli: Cli, tmp_path: Path, directory: Path) -> None:
        convert(directory, tmp_path / "x.gchk")
        done = cli("info", str(tmp_path / "x.gchk"))
        assert (done.code, done.err) == (0, "")
        rows = [line.split() for line in done.out.splitlines()]
        assert ["kind", '"gpt2"'] in rows
        assert ["n_embd", "32"] in rows
        assert ["note", '"' + "x" * 56 + "..."] in rows
        assert ["tensor", "dtype", "shape", "bytes", "id"] in rows
        name = "transformer.wpe.weight"
        assert [name, "f32", "[48,32]", "6,144", f"{base_param_id(name):032x}"] in rows
        arrays = load_arrays(directory / "model.safetensors").values()
        elements = sum(array.size for array in arrays)
        assert rows[-1][:4] == ["28", "tensors,", f"{elements:,}", "elements,"]
        same = cli("info", str(directory)).out.splitlines()
        assert same[same.index("") :] == done.out.splitlines()[same.index("") :]

    def test_names_and_ids_are_whole_on_a_narrow_terminal(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        names = ["x" * 90, "表" * 3]
        write_archive(tmp_path / "x", {name: np.zeros(3, np.int32) for name in names})
        shown = cli("info", str(tmp_path / "x")).out.splitlines()
        ids = [f"{base_param_id(name):032x}" for name in names]
        assert shown[:3] == [
            f" tensor{84 * ' '}  dtype  shape  bytes  id",
            f" {names[0]}  si32   [3]       12  {ids[0]}",
            f" {names[1]}{84 * ' '}  si32   [3]       12  {ids[1]}",
        ]

    def test_json(self, cli: Cli, directory: Path) -> None:
        done = cli("info", str(directory), "--json")
        report = json.loads(done.out)
        assert done.out.count("\n") == 1
        assert report["kind"] == "gpt2"
        assert report["config"]["n_embd"] == 32
        assert report["runtime"] == {"functional_overrides": {"softmax": "force=portable"}}
        arrays = load_arrays(directory / "model.safetensors")
        assert report["elements"] == sum(array.size for array in arrays.values())
        assert report["bytes"] == sum(array.nbytes for array in arrays.values())
        assert report["tensors"] == [
            {
                "name": name,
                "dtype": "f32",
                "shape": list(array.shape),
                "bytes": array.nbytes,
                "id": f"{base_param_id(name):032x}",
                "file": str(directory / "model.safetensors"),
            }
            for name, array in sorted(arrays.items())
        ]

    def test_a_file_without_a_configuration(self, cli: Cli, tmp_path: Path) -> None:
        write_archive(tmp_path / "x", {"[red]a": np.zeros((2, 3), np.int32)})
        done = cli("info", str(tmp_path / "x"))
        assert done.out.split()[:5] == ["tensor", "dtype", "shape", "bytes", "id"]
        assert done.out.split()[5:9] == ["[red]a", "si32", "[2,3]", "24"]
        report = json.loads(cli("info", str(tmp_path / "x"), "--json").out)
        assert (report["kind"], report["config"], report["runtime"]) == (None, {}, {})

    def test_the_bundled_model(self, cli: Cli) -> None:
        assert cli("info", "stories").out.endswith("52 tensors, 965,376 elements, 3.9 MB\n")

    @pytest.mark.parametrize("name", ["none", "text", "cut"])
    def test_errors(self, cli: Cli, tmp_path: Path, directory: Path, name: str) -> None:
        convert(directory, tmp_path / "x.gchk")
        (tmp_path / "text").write_text("text")
        (tmp_path / "cut").write_bytes((tmp_path / "x.gchk").read_bytes()[:-1])
        done = cli("info", str(tmp_path / name))
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("error: ")
        assert str(tmp_path / name) in done.err
        assert done.err.count("error: ") == 1
