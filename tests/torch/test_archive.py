"""``gptrs.load("model.pt2")``: files of ``torch.export.save``, without pickle."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import gptrs
from gptrs.errors import ArgumentError, LoadError

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:copyreg")


class Scaled(nn.Module):
    """A weight, a buffer, a constant, a symbolic size, arguments by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("offset", torch.arange(3.0))
        self.offset: torch.Tensor

    def forward(self, x: torch.Tensor, *, add: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        return (self.linear(x) + add) * by + self.offset + torch.tensor([1.0, 2.0, 3.0])


@pytest.fixture(scope="module")
def scaled() -> Scaled:
    torch.manual_seed(0)
    return Scaled().eval()


@pytest.fixture
def file(scaled: Scaled, tmp_path: Path) -> Path:
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(
        scaled,
        (torch.randn(2, 4),),
        {"add": torch.ones(3), "by": torch.ones(3)},
        dynamic_shapes={"x": {0: batch}, "add": None, "by": None},
    )
    path = tmp_path / "scaled.pt2"
    torch.export.save(program, path)
    return path


def rewritten(path: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """A copy of the archive, each file as ``change(name, bytes)`` says: left out for None."""
    made = path.with_name("changed.pt2")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            if (found := change(name, old.read(name))) is not None:
                new.writestr(name, found)
    return made


def test_a_saved_program_runs(scaled: Scaled, file: Path) -> None:
    loaded = gptrs.load(file)
    for rows in (2, 5):
        x, add, by = torch.randn(rows, 4), torch.randn(3), torch.randn(3)
        made = loaded(x.numpy(), by=by, add=add)  # not in the order of the export
        np.testing.assert_allclose(made, scaled(x, add=add, by=by).detach(), rtol=1e-5, atol=1e-6)
    assert set(loaded.parameters) >= {"linear.weight", "linear.bias"}


def test_example_inputs_are_never_read(file: Path) -> None:
    """They are a pickle."""
    changed = rewritten(file, lambda name, old: b"none" if "sample_inputs" in name else old)
    assert gptrs.load(changed).parameters


def test_weights_in_a_pickle_are_refused(file: Path) -> None:
    def pickled(name: str, old: bytes) -> bytes:
        if not name.endswith("model_weights_config.json"):
            return old
        config: dict[str, Any] = json.loads(old)
        config["config"]["linear.bias"]["use_pickle"] = True
        return json.dumps(config).encode()

    with pytest.raises(LoadError, match=r"linear\.bias is stored as a pickle, which may run code"):
        gptrs.load(rewritten(file, pickled))


def test_constants_in_a_pickle_are_refused(file: Path) -> None:
    def pickled(name: str, old: bytes) -> bytes:
        return old.replace(b"tensor_0", b"opaque_obj_0") if "constants_config" in name else old

    with pytest.raises(LoadError, match="stored as a pickle"):
        gptrs.load(rewritten(file, pickled))


@pytest.mark.parametrize(
    ("ending", "kept", "problem"),
    [
        ("model.json", 100, "cannot be read"),
        ("model_weights_config.json", None, "cannot be read"),
        ("weight_0", 4, "cannot be read"),
        ("model.json", None, "has 0 exported programs"),
        ("archive_format", None, "is no archive"),
    ],
)
def test_broken_archives_are_one_error(
    file: Path, ending: str, kept: int | None, problem: str
) -> None:
    """A file is cut off, or left out."""

    def broken(name: str, old: bytes) -> bytes | None:
        if not name.endswith(f"/{ending}"):
            return old
        return None if kept is None else old[:kept]

    with pytest.raises(LoadError, match=problem):
        gptrs.load(rewritten(file, broken))


def test_other_files_are_one_error(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="there is no file"):
        gptrs.load(tmp_path / "absent.pt2")
    (tmp_path / "bytes.pt2").write_bytes(b"text")
    with pytest.raises(LoadError, match=r"is no archive of torch\.export"):
        gptrs.load(tmp_path / "bytes.pt2")


def test_options_of_models_are_refused(file: Path) -> None:
    with pytest.raises(ArgumentError, match="loaded without options"):
        gptrs.load(file, kv_cache_dtype="bf16")
