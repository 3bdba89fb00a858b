"""``gptrs forward``: images in, likeliest classes and logits out."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import gptrs
from gptrs.formats.archive import read_archive, write_archive
from gptrs.loading.image_classifier import ImageClassifier
from tests.support.cli import Cli, in_process, rows, saved
from tests.support.image_models import resnet
from tests.support.models import load_arrays, save_arrays
from tests.support.pictures import RESNET, picture
from tests.support.stored import fill_disk

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


@pytest.fixture
def see(images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs ``gptrs forward`` on the image model."""
    return in_process(monkeypatch, capsys, "forward", "--model", str(images))


@pytest.mark.slow
def test_an_image(see: Cli, images: Path, classifier: ImageClassifier) -> None:
    done = see("--input", str(images / "one.png"), "--top", "3")
    assert (done.code, done.err) == (0, "")
    head, *found = rows(done.out)
    assert head == ["class", "label", "probability"]
    expected = classifier.classify(images / "one.png", top=3)
    assert found == [[str(each.index), each.name, f"{each.probability:.4f}"] for each in expected]


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_without_an_input_the_image_is_random_and_always_the_same(see: Cli, tmp_path: Path) -> None:
    done = see("--json", "--out", str(tmp_path / "a.npy"))
    assert (done.code, done.err) == (0, "no --input: running on a random image (seed 0)\n")
    assert json.loads(done.out)["input"] == "random"
    assert see("--json", "--out", str(tmp_path / "b.npy")) == done
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["reference", "faer"])
def test_a_backend(
    see: Cli, images: Path, classifier: ImageClassifier, tmp_path: Path, backend: str
) -> None:
    options = ["--input", str(images / "one.png"), "--backend", backend, "--threads", "1"]
    logits = saved(see, tmp_path / "x.npy", *options)
    expected = classifier.forward(classifier.preprocessor([images / "one.png"])).numpy()
    assert np.allclose(logits, expected, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_logits_that_are_no_distribution(see: Cli, images: Path, tmp_path: Path) -> None:
    shutil.copytree(images, tmp_path / "model")
    arrays = load_arrays(images / "model.safetensors")
    arrays["classifier.1.bias"][:] = np.nan
    save_arrays(arrays, tmp_path / "model" / "model.safetensors")
    photos = ["--input", str(images / "one.png"), "--out", str(tmp_path / "x.npy")]
    done = see("--model", str(tmp_path / "model"), *photos)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: the largest logit is nan, expected a finite number")
    assert f"in {images / 'one.png'}" in done.err
    assert not (tmp_path / "x.npy").exists()


@pytest.mark.slow
def test_a_device_stays(see: Cli, tmp_path: Path) -> None:
    link = tmp_path / "x.npy"
    link.symlink_to(os.devnull)
    for path, said in ((link, "is a device"), (Path(os.devnull), "ends in ''")):
        done = see("--out", str(path))
        assert (done.code, done.out) == (2, "")
        assert f"{path} {said}" in done.err
    assert link.is_symlink()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--top", "-1"], "--top"),
        (["--top", "many"], "--top"),
        (["--out", ""], "expected one of .npy"),
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


@pytest.mark.slow
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
    (tmp_path / "zero.jpg").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "fields", np.zeros((1, 40, 3), [("a", np.float32)]))
    np.save(tmp_path / "void", floats.astype(ml_dtypes.bfloat16))  # NumPy has no name for it
    np.save(tmp_path / "bools", floats > 0)
    np.save(tmp_path / "five", floats[None])
    np.save(tmp_path / "empty", floats[:0])
    np.save(tmp_path / "bytes", np.zeros((0, 40, 40, 3), np.uint8))
    np.save(tmp_path / "inf", floats[:1] - np.inf)
    np.save(tmp_path / "large", np.full((40, 40, 3), 1e300))
    floats[1, 2, 3, 0] = np.nan
    np.save(tmp_path / "nan", floats.transpose(0, 3, 1, 2))
    for name, said in {
        "none.png": "does not exist",
        "text.jpg": "is no image",
        "half.png": "cannot be decoded",
        "half.npy": "cannot be read as NumPy arrays: ",
        "half.npz": "cannot be read as NumPy arrays: ",
        "half.gten": "half.gten: the file has 0 bytes left",
        "object.npy": "cannot be read as NumPy arrays: ",
        "two.npz": "holds 2 arrays: 'a', 'b', expected one, or one called 'images' or 'input'",
        "none.npz": "holds 0 arrays, expected one",
        "ints.npy": "holds int32[2,40,40,3], expected floats",
        "rank.npy": "holds float32[40,3], expected floats",
        "channels.npy": "images have shape [40,40,2] each",
        "wide.npy": "has shape [40,30,3] and",
        "zero.jpg": "is empty, expected an image",
        "folder": "is a folder, expected an image or an array",
        "fields.npy": "[1,40,3], expected floats",
        "void.npy": "holds |V2[2,40,40,3], expected floats",
        "bools.npy": "holds bool[2,40,40,3], expected floats",
        "five.npy": "holds float32[1,2,40,40,3], expected floats",
        "empty.npy": "holds float32[0,40,40,3], expected floats",
        "bytes.npy": "holds uint8[0,40,40,3], expected floats",
        "nan.npy": "holds nan at [1, 0, 2, 3], expected finite numbers",
        "inf.npy": "holds -inf at [0, 0, 0, 0], expected finite numbers",
        "large.npy": "holds 1e+300 at [0, 0, 0], expected finite numbers",
    }.items():
        done = see("--input", str(images / "one.png"), "--input", str(tmp_path / name))
        assert (done.code, done.out) == (1, ""), name
        assert done.err.startswith("error: ")
        assert said in done.err
        assert str(tmp_path / name) in done.err
        assert "Traceback" not in done.err
    assert "takes images" in see("--text", "a").err


@pytest.mark.slow
def test_logits_are_written_whole_or_not_at_all(
    see: Cli, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch)
    done = see("--input", str(images / "one.png"), "--out", str(tmp_path / "x.npy"))
    assert done.code == 1
    assert "x.npy cannot be written: No space left on device" in done.err
    assert not list(tmp_path.iterdir())
