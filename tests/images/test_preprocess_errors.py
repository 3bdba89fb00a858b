"""Invalid images and preprocessor_config.json files: one clear error each."""

from __future__ import annotations

import json
import os
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.preprocessor import read_preprocessor
from gptrs.images.decode import FORMATS
from tests.support.pictures import RESNET, picture, preprocessor


@pytest.mark.parametrize(
    ("fields", "field", "found", "expected"),
    [
        (
            {"feature_extractor_type": "CLIPFeatureExtractor"},
            "image_processor_type",
            "'CLIP",
            "ViT",
        ),
        ({"feature_extractor_type": None}, "image_processor_type", "None", "ConvNextImageProc"),
        ({"feature_extractor_type": ["ViT"]}, "image_processor_type", "['ViT']", "one of"),
        ({"size": 0}, "size", "0", "from 1 to 4096"),
        ({"size": 10**9}, "size", "1000000000", "from 1 to 4096"),
        ({"size": 4097}, "size", "4097", "from 1 to 4096"),
        ({"size": True}, "size", "True", "pixels"),
        ({"size": 22.5}, "size", "22.5", "pixels"),
        ({"size": {"height": 8, "width": 8}}, "size", "'height'", "shortest_edge"),
        ({"size": {"shortest_edge": "8"}}, "size", "'8'", "pixels"),
        ({"size": {"shortest_edge": 8, "longest_edge": 9}}, "size", "longest", "shortest_edge"),
        ({"crop_pct": 0}, "crop_pct", "0", "above 0, at most 1"),
        ({"crop_pct": 1.5}, "crop_pct", "1.5", "above 0, at most 1"),
        ({"crop_pct": float("nan")}, "crop_pct", "nan", "above 0, at most 1"),
        ({"crop_pct": 1e-9}, "crop_pct", "1e-09", "more, so that images have at most 4096"),
        ({"crop_pct": 1e-320}, "crop_pct", "1e-320", "more, so that images"),
        ({"do_resize": 1}, "do_resize", "1", "true or false"),
        ({"do_normalize": "yes"}, "do_normalize", "'yes'", "true or false"),
        ({"do_pad": True}, "do_pad", "True", "false"),
        ({"do_center_crop": True}, "crop_size", "None", "height"),
        ({"do_center_crop": True, "crop_size": {"height": 4}}, "crop_size", "'height'", "width"),
        ({"do_center_crop": True, "crop_size": -4}, "crop_size", "-4", "from 1 to 4096"),
        ({"resample": 6}, "resample", "6", "from 0 to 5"),
        ({"resample": "bicubic"}, "resample", "'bicubic'", "from 0 to 5"),
        ({"rescale_factor": -1}, "rescale_factor", "-1", "above 0"),
        ({"rescale_factor": 10**400}, "rescale_factor", "1000", "above 0"),
        ({"rescale_factor": 1e300}, "rescale_factor", "1e+300", "above 0, at most 1e+09"),
        ({"image_mean": [0.5, 0.5]}, "image_mean", "[0.5, 0.5]", "3 numbers"),
        ({"image_mean": [0.5, "a", 0.5]}, "image_mean", "'a'", "3 numbers"),
        ({"image_mean": 1e300}, "image_mean", "1e+300", "3 numbers from -1e+09 to 1e+09"),
        ({"image_std": [0.5, 0, 0.5]}, "image_std", "[0.5, 0, 0.5]", "3 numbers from 1e-09"),
        ({"image_std": float("inf")}, "image_std", "inf", "3 numbers from 1e-09 to 1e+09"),
        ({"image_std": 1e-320}, "image_std", "1e-320", "3 numbers from 1e-09"),
    ],
    ids=str,
)
def test_bad_fields(
    tmp_path: Path, fields: dict[str, Any], field: str, found: str, expected: str
) -> None:
    with pytest.raises(LoadError) as caught:
        preprocessor(tmp_path, **RESNET | fields)
    start, _, rest = caught.value.problem.partition(" is ")
    assert start == f"{tmp_path / 'preprocessor_config.json'}: {field}"
    value, _, wanted = rest.partition(", expected ")
    assert found in value
    assert expected in wanted
    assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "is not JSON"),
        (b"[]", "holds a list, expected an object"),
        (b"\xff", "cannot be read"),
        (b"[" * 100_000, "is not JSON"),
    ],
    ids=["cut", "list", "bytes", "deep"],
)
def test_no_json(tmp_path: Path, text: bytes, said: str) -> None:
    (tmp_path / "preprocessor_config.json").write_bytes(text)
    with pytest.raises(LoadError, match=rf"preprocessor_config\.json {said}"):
        read_preprocessor(tmp_path, size=224, channels=3)


def test_other_numbers_of_channels(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="does not exist, and nothing is usual for images of 1"):
        read_preprocessor(tmp_path, size=224, channels=1)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(RESNET | {"do_normalize": False}))
    with pytest.raises(ArgumentError, match="channels is 4, expected 1"):
        read_preprocessor(tmp_path, size=224, channels=4)


def png(width: int, height: int) -> bytes:
    """A grey image whose rows are not there."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"")
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def tiled(width: int, height: int, tile_width: int, tile_height: int) -> bytes:
    """A compressed TIFF of one tile, which is larger than the image."""
    data = zlib.compress(b"")
    tags = {256: width, 257: height, 258: 8, 259: 8, 262: 1, 277: 1}
    tags |= {322: tile_width, 323: tile_height, 324: 8, 325: len(data)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    directory = struct.pack("<H", len(tags)) + entries + bytes(4)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory


def encoded(kind: str) -> bytes:
    file = BytesIO()
    picture(200, 150).save(file, kind)
    return file.getvalue()


def damaged(data: bytes) -> bytes:
    """``data`` with 40 other bytes in its middle."""
    return data[: len(data) // 2] + b"\xa5" * 40 + data[len(data) // 2 + 40 :]


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty, expected an image"),
    "text": (b"not a picture", "is no image, expected an image"),
    "zeros": (bytes(1000), "is no image"),
    "magic": (b"\x89PNG\r\n\x1a\n", "is no image"),
    "half-a-jpeg": (encoded("JPEG")[:2000], "cannot be decoded: OSError: "),
    "half-a-png": (encoded("PNG")[:3000], "cannot be decoded: OSError: "),
    "damaged-png": (damaged(encoded("PNG")), "cannot be decoded: "),
    "damaged-tiff": (encoded("TIFF")[:1000], "cannot be decoded: |is no image"),
    "no-rows": (png(20, 20), "cannot be decoded: "),
    "bomb": (png(60_000, 60_000), "has too many pixels: "),
    "half-a-bomb": (png(10_000, 10_000), "has too many pixels: "),
    "too-many": (png(8001, 8000), "has too many pixels: 8001 by 8000, expected at most 64000000"),
    "one-row-less": (png(8000, 8000), "cannot be decoded: "),
    "tile": (tiled(70, 40, 16_000, 16_000), "has too many pixels: 16000 by 16000, expected"),
    "postscript": (
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n",
        "is no image, expected an image: BMP, GIF, ",
    ),
    "zero-size": (png(0, 20), "cannot be decoded: |is no image|is 0 by 20 pixels"),
    "gif": (encoded("GIF")[:100], "cannot be decoded: |is no image"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files(tmp_path: Path, name: str) -> None:
    data, said = FILES[name]
    (tmp_path / "photo.png").write_bytes(data)
    usual = read_preprocessor(tmp_path, size=32, channels=3)
    with pytest.raises(LoadError, match=rf"photo\.png ({said})") as caught:
        usual([picture(40, 40), tmp_path / "photo.png"])
    assert str(tmp_path) in str(caught.value)


@pytest.mark.slow
def test_no_other_format_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Pillow reads besides is not even looked at: for one it would start Ghostscript."""
    program = tmp_path / "gs"
    program.write_text(f"#!/bin/sh\necho run >> {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    usual = read_preprocessor(tmp_path, size=32, channels=3)
    Image.init()
    read: set[str] = set()
    for kind in sorted(Image.SAVE.keys() & Image.OPEN.keys()):
        file = tmp_path / f"photo.{kind}"
        try:
            picture(64, 64).save(file, kind)
        except (OSError, ValueError, KeyError, DeprecationWarning):
            continue  # it holds no colours, or needs a program
        if kind in FORMATS:
            assert usual([file]).shape == (1, 32, 32, 3)
            read.add(kind)
        else:
            with pytest.raises(LoadError, match=rf"photo\.{kind} is no image, expected an image: "):
                usual([file])
    assert read == set(FORMATS)
    assert not (tmp_path / "ran").exists()


def test_the_first_of_several_pictures(tmp_path: Path) -> None:
    first = picture(40, 40).quantize(16).convert("RGB")  # as many colours as a GIF holds
    second = picture(40, 40, seed=1)
    usual = read_preprocessor(tmp_path, size=32, channels=3)
    first.save(tmp_path / "one.jpg", "JPEG", quality=95)
    for kind in ("MPO", "TIFF", "GIF", "WEBP", "PNG"):
        options: dict[str, Any] = {"quality": 95} if kind == "MPO" else {"lossless": True}
        pictures = first.copy(), [second.copy()]  # saving leaves traces
        pictures[0].save(tmp_path / kind, kind, save_all=True, append_images=pictures[1], **options)
        expected = tmp_path / "one.jpg" if kind == "MPO" else first
        np.testing.assert_array_equal(usual([tmp_path / kind]), usual([expected]))


def test_the_limit_of_pixels_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = read_preprocessor(tmp_path, size=32, channels=3)
    monkeypatch.setenv("GPTRS_MAX_PIXELS", "1600")
    assert usual([picture(40, 40)]).shape == (1, 32, 32, 3)
    with pytest.raises(ArgumentError, match="too many pixels: 41 by 40, expected at most 1600"):
        usual([picture(41, 40)])


def test_files_that_are_not_there(tmp_path: Path) -> None:
    usual = read_preprocessor(tmp_path, size=32, channels=3)
    with pytest.raises(LoadError, match=r"none\.png does not exist"):
        usual([tmp_path / "none.png"])
    with pytest.raises(LoadError, match="is a folder, expected an image") as caught:
        usual([tmp_path])
    assert str(tmp_path) in caught.value.problem
    with pytest.raises(LoadError, match="cannot be read: "):
        usual(["a\0b"])


OTHERS: dict[str, tuple[Any, str]] = {
    "number": ([3], r"images\[0\] is a int, expected a path"),
    "list": ([[[0]]], r"images\[0\] is a list"),
    "nothing": ([], "images is empty"),
    "path": ("photo.png", "images is a str, expected several images"),
    "image": (Image.new("RGB", (4, 4)), "expected several images"),
    "array": (np.zeros((4, 4, 3), np.uint8), "expected several images"),
    "integers": ([np.zeros((4, 4, 3), np.int64)], r"an array \[4, 4, 3\] of int64, expected"),
    "grey": ([np.zeros((4, 4), np.uint8)], r"\[4, 4\] of uint8, expected \[height, width, 3\]"),
    "channels-first": ([np.zeros((3, 4, 4), np.uint8)], r"\[3, 4, 4\] of uint8"),
    "no-pixels": ([np.zeros((0, 4, 3), np.uint8)], "at least 1 by 1 pixel"),
    "no-width": ([Image.new("RGB", (0, 4))], "is 0 by 4 pixels"),
    "bright": ([np.full((4, 4, 3), 255.0)], r"floats from 255\.0 to 255\.0, expected 0 to 1"),
    "dark": ([np.full((4, 4, 3), -0.1)], "expected 0 to 1"),
    "nan": ([np.full((4, 4, 3), np.nan)], "expected 0 to 1"),
    "deep": ([Image.new("F", (4, 4))], "32 bits a pixel"),
    "long": ([Image.new("L", (1, 100_000))], "and resized 36 by 3600000, expected at most"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_bad_arguments(tmp_path: Path, name: str) -> None:
    images, said = OTHERS[name]
    usual = read_preprocessor(tmp_path, size=32, channels=3)
    with pytest.raises(ArgumentError, match=said):
        usual(images)


def test_images_that_stay_of_different_sizes(tmp_path: Path) -> None:
    kept = preprocessor(tmp_path, image_processor_type="ViTImageProcessor", do_resize=False)
    assert kept.size is None
    with pytest.raises(ArgumentError, match=r"images\[1\] becomes 9×8 pixels and images\[0\] 4×5"):
        kept([picture(5, 4), picture(8, 9)])
