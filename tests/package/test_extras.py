"""Optional dependencies: the core works without them, and one error names the missing extra."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from gptrs.errors import ArgumentError, LoadError, MissingPackageError
from gptrs.extras import EXTRAS, needed_for
from gptrs.models import BUNDLED
from tests.support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = {"numpy", "numba", "llvmlite", "ml-dtypes"}
OR_ALL = ", or 'gptrs[all]' for models, text, images and the command line"
PARTS = """
import numpy as np
import gptrs
from gptrs import ptir
from gptrs.images.decode import decode
from gptrs.images.preprocess import _resized
from gptrs.loading.threads import limit_threads
"""
# As where packages are not installed: all but those of the core, or those that are named.
HIDING = """
import sys

KEPT = {{"numpy", "numba", "llvmlite", "ml_dtypes", "gptrs", "gptrs_bench"}}
HIDDEN = {hidden!r}

class Hiding:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        installed = first not in sys.stdlib_module_names and not first.startswith("_")
        if first in HIDDEN if HIDDEN else installed and first not in KEPT:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None

sys.meta_path.insert(0, Hiding())
sys.argv[0] = "gptrs"
{code}
"""


def without(hidden: str, code: str, *arguments: str) -> tuple[int, str, str]:
    """The exit code of ``code`` in a Python without the package ``hidden``, or without all but the
    core dependencies where it is empty; what it prints, and what it says on stderr."""
    program = HIDING.format(hidden=hidden.split(), code=code)
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return done.returncode, done.stdout, done.stderr


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[>=\[]", each)[0].lower() for each in requirements}


def test_the_core_dependencies() -> None:
    assert names(PROJECT["dependencies"]) == CORE


def test_each_extra_brings_what_the_errors_say() -> None:
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        packages = {package.lower() for package in modules.values()} - {"gptrs_bench"}
        assert packages <= names(extras[extra]), extra
    assert extras["all"] == ["gptrs[models,text,images,cli]"]
    assert {"gptrs[all]"} <= set(extras["bench"])


@pytest.mark.slow
def test_jit_works_with_the_core() -> None:
    code = """
from gptrs import ptir

@ptir.jit
def attend(x, w):
    q, k, v = (x @ w).split(4, axis=-1)
    return ptir.exp(ptir.softmax(q @ k.T) @ v) + x.mean()

x, w = np.ones((3, 4), np.float32), np.ones((4, 12), np.float32)
assert np.allclose(attend(x, w), np.exp(4) + 1)
print(attend.explain(x, w), attend.program(x, w))
"""
    code_and_words = without("", PARTS + code)
    assert code_and_words[::2] == (0, "")
    assert "native steps" in code_and_words[1]


@pytest.mark.slow
def test_models_run_on_tokens_with_the_core() -> None:
    code = "print(gptrs.load('stories').forward([[1, 2, 3]]).shape)"
    assert without("", PARTS + code) == (0, "(1, 3, 1024)\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "gptrs.load('stories').generate('Once', max_tokens=1)",
            f"reading {BUNDLED['stories'] / 'tokenizer.json'} needs tokenizers|[text]",
        ),
        (
            "from gptrs.text.chat_template import CHATML, ChatTemplate;"
            " ChatTemplate(CHATML, 'here').render([{'role': 'user', 'content': ''}])",
            "the chat template of here needs Jinja2|[text]",
        ),
        ("gptrs.Parameter(np.ones(3, 'f4')).id", "the id of a parameter needs blake3|[models]"),
        ("decode('cat.jpg', 3, 'image 0')", "decoding cat.jpg needs Pillow|[images]"),
        ("decode(object(), 3, 'image 0')", "decoding image 0 needs Pillow|[images]"),
        (
            "_resized(np.ones((4, 4, 3), np.uint8), (2, 2), 2, 'image 0')",
            "resizing image 0 needs Pillow|[images]",
        ),
        ("limit_threads(1)", "limiting the threads of NumPy needs threadpoolctl|[cli]"),
    ],
)
def test_what_needs_an_extra_names_it(code: str, said: str) -> None:
    caught = f"""
try:
    {code}
except gptrs.PtirError as error:
    print(type(error).__name__, error)
"""
    problem, extra = said.split("|")
    assert without("", PARTS + caught) == (
        0,
        f"MissingPackageError {problem}, which is not installed\n"
        f"  fix: pip install 'gptrs{extra}'{OR_ALL}\n",
        "",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "hidden", "said"),
    [
        ("--version", "", "the gptrs command needs typer|[cli]"),
        ("info stories", "rich", "the gptrs command needs rich|[cli]"),
        (
            "generate Once",
            "tokenizers",
            f"reading {BUNDLED['stories'] / 'tokenizer.json'} needs tokenizers|[text]",
        ),
        (
            "generate Once --threads 1",
            "threadpoolctl",
            "limiting the threads of NumPy needs threadpoolctl|[cli]",
        ),
    ],
)
def test_the_command_line_names_it(arguments: str, hidden: str, said: str) -> None:
    code = "from gptrs.cli.main import main; main()"
    problem, extra = said.split("|")
    assert without(hidden, code, *arguments.split()) == (
        1,
        "",
        f"error: {problem}, which is not installed\n  fix: pip install 'gptrs{extra}'{OR_ALL}\n",
    )


def test_it_is_an_error_of_each_kind() -> None:
    absent = ModuleNotFoundError("No module named 'yaml.nodes'", name="yaml.nodes")
    with (
        pytest.raises(MissingPackageError, match="a suite needs PyYAML") as caught,
        needed_for("a suite", instead="write JSON"),
    ):
        raise absent
    assert caught.value.fix == "pip install 'gptrs[bench]', or write JSON"
    assert caught.value.__suppress_context__
    for kind in (LoadError, ArgumentError, ImportError):
        assert isinstance(caught.value, kind)


def test_other_errors_of_imports_stay() -> None:
    with pytest.raises(ModuleNotFoundError, match="nothing"), needed_for("a suite"):
        raise ModuleNotFoundError("nothing", name="nothing")
    with pytest.raises(ImportError, match="broken") as caught, needed_for("a suite"):
        raise ImportError("broken", name="yaml")
    assert type(caught.value) is ImportError
