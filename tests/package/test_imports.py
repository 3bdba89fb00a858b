"""Modules that an import or a run of the package loads: start-up stays cheap."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import gptrs
from tests.support.models import tiny_gpt2

HEAVY = {
    *(
        "PIL",
        "blake3",
        "ml_dtypes",
        "numba",
        "numpy",
        "rich",
        "safetensors",
        "threadpoolctl",
        "tokenizers",
    ),
    *("torch", "transformers", "typer"),
}

# What only errors need, parameter ids, writing, other formats, and models of another kind.
UNUSED = {
    *("gptrs.backends.faer.calls.bottleneck", "gptrs.backends.faer.calls.conv"),
    *("blake3", "difflib", "gptrs.images", "gptrs.models.torchvision", "gptrs.formats.archive"),
    *("gptrs.formats.checkpoint", "gptrs.loading.image_classifier", "gptrs.formats.sidecar_files"),
    *("gptrs.loading.convert", "gptrs.formats.binary_fields", "gptrs.formats.hf_directory"),
    *(
        "gptrs.formats.safetensors_writer",
        "gptrs.formats.tensor_writer",
        "gptrs.formats.atomic_write",
    ),
    *("gptrs.formats.tensor_index", "gptrs.formats.torchvision", "gptrs.formats.write_events"),
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose kernels are in the cache: compiling them takes Numba."""
    made = tiny_gpt2(tmp_path_factory.mktemp("gpt2"))
    gptrs.load(made).generate("once", max_tokens=2)
    return made


def imported(code: str, *arguments: str, of: set[str] = HEAVY) -> set[str]:
    """Which of the heavy packages, or others, a fresh interpreter has imported after ``code``."""
    report = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", f"{code}\n{report}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return of & set(json.loads(done.stdout.splitlines()[-1]))


def test_the_package_alone_imports_nothing() -> None:
    assert imported("import gptrs; dir(gptrs); gptrs.__version__") == set()


def test_the_command_line_starts_without_the_engine() -> None:
    assert imported("import gptrs.cli.app") <= {"typer", "rich"}


@pytest.mark.slow
def test_tracing_needs_numpy_only() -> None:
    code = "from gptrs import ptir; ptir.jit(lambda x: ptir.softmax(x))(ptir.tensor([1.0, 2.0]))"
    assert imported(code) <= {"numpy", "ml_dtypes"}


@pytest.mark.slow
def test_generating_needs_no_torch(directory: Path) -> None:
    code = "import sys, gptrs; gptrs.load(sys.argv[1]).generate('once', max_tokens=2)"
    found = imported(code, str(directory))
    assert found <= {"numpy", "ml_dtypes", "safetensors", "tokenizers"}


@pytest.mark.slow
def test_a_directory_of_a_language_model_imports_what_it_uses(directory: Path) -> None:
    code = "import sys, gptrs; gptrs.load(sys.argv[1]).generate('once', max_tokens=2)"
    assert imported(code, str(directory), of=UNUSED) == set()


@pytest.mark.slow
def test_what_is_unused_there_exists(directory: Path) -> None:
    code = "import difflib, sys, gptrs.loading.convert, gptrs.loading.image_classifier\n"
    code += "import gptrs.backends.faer.calls.bottleneck\n"
    code += "gptrs.loading.convert.convert(sys.argv[1], sys.argv[2])"
    written = str(directory.parent / "x.gchk")
    assert imported(code, str(directory), written, of=UNUSED) == UNUSED


@pytest.mark.slow
def test_the_command_line_draws_nothing_it_does_not_show(directory: Path) -> None:
    code = (
        "import sys; from gptrs.cli.app import run\n"
        "sys.argv = ['gptrs', 'generate', 'once', '--max-tokens', '2', '--model', sys.argv[1]]\n"
        "assert run() == 0; print()"
    )
    assert not imported(code, str(directory)) & {"numba", "torch", "transformers"}


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gptrs.nothing  # pyright: ignore[reportUnknownVariableType, reportAttributeAccessIssue]
    assert {"load", "ptir", "Tensor", "Parameter"} <= set(dir(gptrs))
