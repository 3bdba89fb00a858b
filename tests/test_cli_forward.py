"""``gptrs forward``: images and tokens in, likeliest classes and tokens and logits out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gptrs
from gptrs.runtime.archive import read_archive, write_archive
from gptrs.runtime.classifier import ImageClassifier
from gptrs.runtime.language import LanguageModel
from tests.cli import Cli, in_process
from tests.image_models import resnet
from tests.models import tiny_gpt2
from tests.pictures import RESNET, picture

NAMES = ["cat", "dog", "[red]fox[/]", "été", "cup", "hat", "key"]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image model, and two photos."""
    directory = tmp_path_factory.mktemp("images")
    resnet(directory, id2label=dict(enumerate(NAMES)))
    (directory / "preprocessor_config.json").write_text(json.dumps(RESNET | {"size": 40}))
    picture(60, 50, seed=1).save(directory / "one.png")
    picture(45, 70, seed=2).save(directory / "two.jpg")
    return directory


@pytest.fixture(scope="module")
def classifier(images: Path) -> ImageClassifier:
    return gptrs.load(images)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gpt2(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def language(words: Path) -> LanguageModel:
    return gptrs.load(words)


@pytest.fixture
def see(images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs ``gptrs forward`` on the image model."""
    return in_process(monkeypatch, capsys, "forward", "--model", str(images))


@pytest.fixture
def read(words: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs ``gptrs forward`` on the language model."""
    return in_process(monkeypatch, capsys, "forward", "--model", str(words))


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def saved(see: Cli, out: Path, *arguments: str) -> NDArray[Any]:
    """The logits that a command writes."""
    done = see(*arguments, "--out", str(out))
    assert (done.code, done.err) == (0, "")
    return np.load(out)


def test_an_image(see: Cli, images: Path, classifier: ImageClassifier) -> None:
    done = see("--input", str(images / "one.png"), "--top", "3")
    assert (done.code, done.err) == (0, "")
    head, *found = rows(done.out)
    assert head == ["class", "label", "probability"]
    expected = classifier.classify(images / "one.png", top=3)
    assert found == [[str(each.index), each.name, f"{each.probability:.4f}"] for each in expected]


def test_several_images_are_one_batch(
    see: Cli, images: Path, classifier: ImageClassifier, tmp_path: Path
) -> None:
    files = [images / "one.png", images / "two.jpg"]
    inputs = ["--input", str(files[0]), "--input", str(files[1])]
    done = see(*inputs)
    first, second = done.out.split("\n\n")
    assert [first.split("\n")[0], second.split("\n")[0]] == [str(file) for file in files]
    assert len(rows(second)) == 2 + 5
    logits = saved(see, tmp_path / "x.npy", *inputs)
    assert np.array_equal(logits, classifier.forward(classifier.preprocessor(files)).numpy())


def test_json(see: Cli, images: Path, classifier: ImageClassifier) -> None:
    files = [images / "one.png", images / "two.jpg"]
    done = see("--input", str(files[0]), "--input", str(files[1]), "--top", "100", "--json")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["input"] for line in lines] == [str(file) for file in files]
    for line, labels in zip(lines, classifier.classify(files, top=7), strict=True):
        assert sorted(choice["label"] for choice in line["top"]) == sorted(NAMES)
        for choice, label in zip(line["top"], labels, strict=True):
            assert (choice["class"], choice["label"]) == (label.index, label.name)
            assert choice["probability"] == pytest.approx(label.probability, rel=1e-9)


def test_arrays_are_used_as_they_are(
    see: Cli, images: Path, classifier: ImageClassifier, tmp_path: Path
) -> None:
    ready = classifier.preprocessor([images / "one.png", images / "two.jpg"])
    expected = classifier.forward(ready).numpy()
    other = np.zeros(3, np.float32)
    np.save(tmp_path / "nhwc", ready)
    np.save(tmp_path / "nchw", ready.transpose(0, 3, 1, 2))
    np.save(tmp_path / "hwc", ready[0])
    np.save(tmp_path / "f64", ready.astype(np.float64))
    np.savez(tmp_path / "only", whatever=ready)
    np.savez(tmp_path / "named", other=other, images=ready)
    write_archive(tmp_path / "archive", {"other": other, "input": ready})  # told by its magic
    for name in ("nhwc.npy", "nchw.npy", "f64.npy", "only.npz", "named.npz", "archive"):
        logits = saved(see, tmp_path / "x.npy", "--input", str(tmp_path / name))
        assert np.array_equal(logits, expected), name
    (head, *_) = see("--input", str(tmp_path / "nhwc.npy")).out.splitlines()
    assert head == f"{tmp_path / 'nhwc.npy'}[0]"
    both = ["--input", str(tmp_path / "hwc.npy"), "--input", str(images / "two.jpg")]
    assert np.array_equal(saved(see, tmp_path / "x.npy", *both), expected)


def test_arrays_of_bytes_are_pixels(
    see: Cli, images: Path, classifier: ImageClassifier, tmp_path: Path
) -> None:
    pixels = np.asarray(picture(60, 50, seed=1))
    np.save(tmp_path / "pixels", pixels)
    np.save(tmp_path / "first", np.stack([pixels, pixels]).transpose(0, 3, 1, 2))
    expected = classifier.forward(classifier.preprocessor([images / "one.png"])).numpy()
    for name, count in (("pixels", 1), ("first", 2)):
        logits = saved(see, tmp_path / "x.npy", "--input", str(tmp_path / f"{name}.npy"))
        assert np.allclose(logits, expected.repeat(count, 0), rtol=0, atol=1e-5)


def test_without_an_input_the_image_is_random_and_always_the_same(see: Cli, tmp_path: Path) -> None:
    done = see("--json", "--out", str(tmp_path / "a.npy"))
    assert (done.code, done.err) == (0, "no --input: running on a random image (seed 0)\n")
    assert json.loads(done.out)["input"] == "random"
    assert see("--json", "--out", str(tmp_path / "b.npy")) == done
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_logits_in_every_kind_of_file(see: Cli, images: Path, tmp_path: Path) -> None:
    photo = ["--input", str(images / "one.png")]
    expected = saved(see, tmp_path / "x.npy", *photo)
    assert (expected.shape, expected.dtype) == ((1, 7), np.float32)
    for name in ("x.npz", "x.gten"):
        assert see(*photo, "--out", str(tmp_path / name)).code == 0
    with np.load(tmp_path / "x.npz") as arrays:
        assert list(arrays) == ["logits"]
        assert np.array_equal(arrays["logits"], expected)
    assert list(found := read_archive(tmp_path / "x.gten")) == ["logits"]
    assert np.array_equal(found["logits"], expected)


@pytest.mark.parametrize("backend", ["reference", "faer"])
def test_a_backend(
    see: Cli, images: Path, classifier: ImageClassifier, tmp_path: Path, backend: str
) -> None:
    options = ["--input", str(images / "one.png"), "--backend", backend, "--threads", "1"]
    logits = saved(see, tmp_path / "x.npy", *options)
    expected = classifier.forward(classifier.preprocessor([images / "one.png"])).numpy()
    assert np.allclose(logits, expected, rtol=0, atol=1e-4)


def test_text(read: Cli, language: LanguageModel, tmp_path: Path) -> None:
    logits = saved(read, tmp_path / "x.npy", "--text", "once upon")
    ids = language.tokenizer.encode("once upon")
    assert np.array_equal(logits, language.forward([ids]).numpy())
    done = read("--text", "once upon", "--top", "1", "--json")
    told = json.loads(done.out)
    likely = language.complete("once upon", max_tokens=1, logprobs=1).logprobs
    assert likely is not None
    (token, logprob) = likely[0].top[0]
    spelt = repr(language.tokenizer.spell(token))
    assert told["input"] == "once upon"
    assert [(each["id"], each["token"]) for each in told["top"]] == [(token, spelt)]
    assert told["top"][0]["probability"] == pytest.approx(np.exp(logprob), rel=1e-4)
    head, row = rows(read("--text", "once upon", "--top", "1").out)
    assert head == ["id", "token", "probability"]
    assert row == [str(token), *spelt.split(), f"{np.exp(logprob):.4f}"]


def test_token_ids(read: Cli, language: LanguageModel, tmp_path: Path) -> None:
    ids = np.array([[5, 9, 200], [1, 2, 3]])
    expected = language.forward(ids).numpy()
    np.save(tmp_path / "both", ids)
    np.save(tmp_path / "first", ids[0])
    np.savez(tmp_path / "second", other=ids, tokens=ids[1:])
    write_archive(tmp_path / "both.gten", {"input_ids": ids.astype(np.int32)})
    for name in ("both.npy", "both.gten"):
        logits = saved(read, tmp_path / "x.npy", "--input", str(tmp_path / name))
        assert np.array_equal(logits, expected), name
    rows_apart = ["--input", str(tmp_path / "first.npy"), "--input", str(tmp_path / "second.npz")]
    assert np.array_equal(saved(read, tmp_path / "x.npy", *rows_apart), expected)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--out", "x.csv"], "x.csv ends in '.csv', expected one of .npy, .npz, .gten"),
        (["--out", "x"], "x ends in '', expected"),
        (["--out", "/no/where/x.npy"], "/no/where is no folder"),
        (["--top", "0"], "--top"),
        (["--backend", "abacus"], "abacus"),
        (["--input", "a.png", "--text", "a"], "give --input or --text, not both"),
        (["a.png"], "a.png"),
    ],
    ids=str,
)
def test_wrong_usage(see: Cli, arguments: list[str], named: str) -> None:
    done = see(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert named in done.err
    assert done.err.count("\n") == 1


def test_a_model_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = in_process(monkeypatch, capsys, "forward")()
    assert (done.code, done.out) == (2, "")
    assert "--model" in done.err


def test_bad_images(see: Cli, images: Path, tmp_path: Path) -> None:
    floats = np.zeros((2, 40, 40, 3), np.float32)
    np.save(tmp_path / "wide", floats[:, :, :30])
    np.save(tmp_path / "ints", floats.astype(np.int32))
    np.save(tmp_path / "rank", floats[0, 0])
    np.save(tmp_path / "channels", floats[..., :2])
    np.savez(tmp_path / "two", a=floats, b=floats)
    np.savez(tmp_path / "none")
    np.save(tmp_path / "object", np.array([{}], object), allow_pickle=True)
    whole = (images / "one.png").read_bytes()
    (tmp_path / "half.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "half.npy").write_bytes((tmp_path / "wide.npy").read_bytes()[:1000])
    (tmp_path / "half.npz").write_bytes((tmp_path / "two.npz").read_bytes()[:1000])
    (tmp_path / "half.gten").write_bytes(b"GPTRSTEN\2\0\0\0")
    (tmp_path / "text.jpg").write_text("a cat")
    for name, said in {
        "none.png": "does not exist",
        "text.jpg": "is no image",
        "half.png": "cannot be decoded",
        "half.npy": "cannot be read as NumPy arrays: ",
        "half.npz": "cannot be read as NumPy arrays: ",
        "half.gten": "has 12 bytes",
        "object.npy": "cannot be read as NumPy arrays: ",
        "two.npz": "holds 2 arrays: 'a', 'b', expected one, or one called 'images' or 'input'",
        "none.npz": "holds 0 arrays, expected one",
        "ints.npy": "holds int32[2,40,40,3], expected floats",
        "rank.npy": "holds float32[40,3], expected floats",
        "channels.npy": "images have shape [40,40,2] each",
        "wide.npy": "has shape [40,30,3] and",
    }.items():
        done = see("--input", str(images / "one.png"), "--input", str(tmp_path / name))
        assert (done.code, done.out) == (1, ""), name
        assert done.err.startswith("error: ")
        assert said in done.err
        assert str(tmp_path / name) in done.err
        assert "Traceback" not in done.err
    assert "takes images" in see("--text", "a").err


def test_bad_tokens(read: Cli, tmp_path: Path, images: Path) -> None:
    np.save(tmp_path / "good", [1, 2, 3])
    np.save(tmp_path / "floats", [1.0])
    np.save(tmp_path / "rank", [[[1, 2, 3]]])
    np.save(tmp_path / "long", [1, 2, 3, 4])
    for file, said in {
        images / "one.png": "is no .npy, .npz or .gten file, expected an array of token ids",
        tmp_path / "floats.npy": "holds float64[1], expected integers [tokens] or [N, tokens]",
        tmp_path / "rank.npy": "holds int64[1,1,3], expected integers",
        tmp_path / "long.npy": "has shape [4] and",
    }.items():
        done = read("--input", str(tmp_path / "good.npy"), "--input", str(file))
        assert (done.code, done.out) == (1, "")
        assert f"error: {file} {said}" in done.err
    np.save(tmp_path / "beyond", [1, 9000])
    assert "tokens hold 9000" in read("--input", str(tmp_path / "beyond.npy")).err
    assert "nothing to run the model on" in read().err
    assert "at least one token" in read("--text", "").err


def test_logits_are_written_whole_or_not_at_all(see: Cli, images: Path, tmp_path: Path) -> None:
    (tmp_path / "x.npy").mkdir()
    done = see("--input", str(images / "one.png"), "--out", str(tmp_path / "x.npy"))
    assert done.code == 1
    assert "x.npy cannot be written: " in done.err
    assert [file.name for file in tmp_path.iterdir()] == ["x.npy"]
