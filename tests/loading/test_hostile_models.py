"""Models whose files are hostile, through the command line: one clear error, or it works."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gptrs
from gptrs.errors import LoadError
from tests.support.cli import Cli, Done, in_process
from tests.support.image_models import resnet
from tests.support.models import config, in_files, random_tokens, save_arrays, tensors, tiny_gpt2

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such files")

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
GENERATION, TOKENIZER = "generation_config.json", "tokenizer.json"
FILES = ("config.json", WEIGHTS, GENERATION, TOKENIZER)
NO_FILE = "it is a directory, a device or a pipe, expected a file"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tiny_gpt2(tmp_path / "model")
    (directory / GENERATION).write_text("{}")
    return directory


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("images") / "model"
    resnet(directory)
    return directory


def commands(cli: Cli, place: Path, out: Path) -> list[Done]:
    """What each verb says of a model."""
    return [
        cli("info", str(place)),
        cli("info", str(place), "--json"),
        cli("convert", str(place), str(out / "x.gchk"), "--force"),
        cli("export", str(place), str(out / "y"), "--force"),
        cli("forward", "--model", str(place), "--text", "on the"),
        cli("generate", "on the", "--model", str(place), "--max-tokens", "2"),
    ]


def assert_one_error(done: Done, *said: str) -> None:
    assert done.code in (1, 2)
    assert done.err.startswith("error: ")
    assert done.err.count("error: ") == 1
    assert "Traceback" not in done.err
    for part in said:
        assert part in done.err


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def endless(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def huge(file: Path) -> None:
    os.truncate(file, 2**40)  # it takes no room on the disk


def loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def nowhere(file: Path) -> None:
    file.unlink()
    file.symlink_to("nowhere")


SPOILT = (pipe, folder, endless, huge, loop, nowhere)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("spoil", SPOILT)
def test_files_that_are_none(
    cli: Cli, tmp_path: Path, directory: Path, name: str, spoil: Callable[[Path], None]
) -> None:
    spoil(directory / name)
    (tmp_path / "out").mkdir()
    done = commands(cli, directory, tmp_path / "out")
    for each in done:
        if each.code:
            assert_one_error(each, f"{directory / name}")
    assert done[-1].code == 1, "all of them are needed for text"


INDEXES: dict[str, tuple[object, str]] = {
    "above": ("../a.safetensors", "expected a .safetensors file of this directory"),
    "absolute": ("/a.safetensors", "expected a .safetensors file of this directory"),
    "nul": ("a\0.safetensors", r"is in 'a\x00.safetensors', expected"),
    "surrogate": ("\ud800.safetensors", r"is in '\ud800.safetensors', expected"),
    "windows": ("..\\a.safetensors", "expected a .safetensors file of this directory"),
    "line": ("a\n.safetensors", r"a\n.safetensors does not exist"),
    "long": ("x" * 300 + ".safetensors", "xxx.safetensors"),
    "number": (3, "is in 3, expected"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_of_other_places(cli: Cli, directory: Path, name: str) -> None:
    place, said = INDEXES[name]
    (directory / WEIGHTS).unlink()
    (directory / INDEX).write_text(json.dumps({"weight_map": {"wte.weight": place}}))
    assert_one_error(cli("info", str(directory)), said, str(directory))


CONFIGS = [
    *[("n_embd", text) for text in ("NaN", "1e999", '"32"', "true", "-32", "0", "32.0")],
    *[("n_embd", text) for text in ("9" * 4000, "9" * 5000, "[32]", "{}")],
    *[("layer_norm_epsilon", text) for text in ("NaN", "1e999", "-Infinity", "9" * 400)],
    *[("vocab_size", "-1"), ("n_positions", "9" * 30), ("n_layer", "99999999999")],
    *[("activation_function", "[]"), ("activation_function", "null")],
    *[("model_type", "[]"), ("model_type", "NaN"), ("model_type", '"\\ud800"')],
    *[("eos_token_id", "1e999"), ("eos_token_id", "true"), ("bos_token_id", "[1]")],
    *[("tie_word_embeddings", "1"), ("runtime", "[]")],
    ("runtime", '{"functional_overrides": {"softmax": NaN}}'),
]


@pytest.mark.parametrize(("field", "text"), CONFIGS, ids=lambda text: text[:20])
def test_configurations(cli: Cli, directory: Path, field: str, text: str) -> None:
    settings = {name: value for name, value in config().items() if name != field}
    given = json.dumps(settings)[:-1] + f', "{field}": {text}}}'
    (directory / "config.json").write_text(given)
    done = cli("forward", "--model", str(directory), "--text", "on the")
    assert_one_error(done, str(directory), "config.json")
    assert cli("info", str(directory)).code in (0, 1)


def test_names_that_a_terminal_should_not_show(cli: Cli, directory: Path) -> None:
    arrays = in_files(tensors(config()))
    arrays["\x1b[31mred\n"] = np.zeros(2, np.float32)
    save_arrays(arrays, directory / WEIGHTS)
    (directory / "config.json").write_text(json.dumps(config(**{"\ud800\x1b": 1})))
    done = cli("info", str(directory))
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert r"\x1b[31mred\n" in done.out
    assert r"\ud800\x1b" in done.out


@pytest.mark.slow
def test_labels_that_a_terminal_should_not_show(cli: Cli, tmp_path: Path, classifier: Path) -> None:
    shutil.copytree(classifier, tmp_path / "model")
    settings = json.loads((classifier / "config.json").read_text())
    names = {str(n): f"\x1b[3{n}m\n" for n in range(6)} | {"6": "\ud800"}
    (tmp_path / "model" / "config.json").write_text(json.dumps(settings | {"id2label": names}))
    done = cli("forward", "--model", str(tmp_path / "model"), "--top", "7")
    assert done.code == 0
    assert "\x1b" not in done.out
    assert r"\ud800" in done.out
    told = cli("forward", "--model", str(tmp_path / "model"), "--top", "7", "--json")
    found = {each["label"] for each in json.loads(told.out)["top"]}
    assert found == set(names.values())


PLACES = [
    "",
    "a\nb",
    "/dev/zero",
    "/dev/null",
    "/proc/self/mem",
    "x" * 5000,
    "/",
    "a\0b",
    "a\udcff",
]


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, ids=lambda place: repr(place)[:20])
def test_places_that_are_no_model(cli: Cli, tmp_path: Path, place: str) -> None:
    for arguments in (
        ("info", place),
        ("convert", place, str(tmp_path / "x.gchk")),
        ("export", place, str(tmp_path / "x.gchk")),
        ("forward", "--model", place),
        ("generate", "on", "--model", place),
    ):
        assert_one_error(cli(*arguments))


@pytest.mark.parametrize("name", ["x.safetensors", "x.gchk", "x"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, Path.touch])
def test_single_files(cli: Cli, tmp_path: Path, name: str, make: Callable[[Path], object]) -> None:
    make(tmp_path / name)
    for arguments in (("info",), ("forward", "--model"), ("generate", "on", "--model")):
        assert_one_error(cli(*arguments, str(tmp_path / name)), str(tmp_path / name))


@pytest.mark.parametrize("suffix", [".json", ".safetensors", ""])
def test_names_that_are_too_long(cli: Cli, suffix: str) -> None:
    name = "x" * 5000 + suffix
    for arguments in (("info",), ("forward", "--model"), ("generate", "on", "--model")):
        assert_one_error(cli(*arguments, name), "cannot be opened: ")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.gten", "x.png"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, Path.touch])
def test_inputs(
    cli: Cli, tmp_path: Path, classifier: Path, name: str, make: Callable[[Path], object]
) -> None:
    make(tmp_path / name)
    done = cli("forward", "--model", str(classifier), "--input", str(tmp_path / name))
    assert_one_error(done, str(tmp_path / name))


@pytest.mark.slow
def test_an_image_model_continues_no_text(cli: Cli, classifier: Path) -> None:
    done = cli("generate", "on the", "--model", str(classifier))
    assert_one_error(done, "is a resnet, which continues no text", "gptrs forward")


def test_files_that_are_gone_after_loading(directory: Path) -> None:
    expected = gptrs.load(directory).forward(random_tokens(5)).numpy()
    model = gptrs.load(directory)
    shutil.rmtree(directory)
    assert model.forward(random_tokens(5)).numpy().tobytes() == expected.tobytes()
    with pytest.raises(LoadError, match=r"tokenizer\.json|has no tokenizer"):
        model.generate("on")


def test_a_directory_that_may_not_be_read(cli: Cli, directory: Path) -> None:
    for name in FILES:
        (directory / name).chmod(0)
    denied = not os.access(directory / "config.json", os.R_OK)  # the superuser may
    done = cli("info", str(directory))
    assert done.code == denied
    if denied:
        assert_one_error(done, "Permission denied")
