"""Image preprocessing against transformers' image processors."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gptrs.formats.preprocessor import read_preprocessor
from gptrs.images.preprocessor_config import IMAGENET_MEAN, IMAGENET_STD
from tests.support.pictures import RESNET, picture, preprocessor

EXACT = 1e-5  # the same steps in the same precision: only the last bits may differ
MODES = ["RGB", "L", "P", "RGBA", "CMYK", "1", "LA", "YCbCr"]
SIZES = [(64, 64), (97, 41), (41, 97), (300, 17), (17, 300), (224, 224), (1, 9), (255, 257)]


def in_transformers(kind: str, fields: dict[str, Any], images: list[Image.Image]) -> NDArray[Any]:
    """What the Pillow processor called ``kind`` makes of the images, channels last."""
    folder = {"ConvNext": "convnext", "MobileNetV2": "mobilenet_v2", "ViT": "vit"}[kind]
    name = f"transformers.models.{folder}.image_processing_pil_{folder}"
    module: Any = pytest.importorskip(name)
    processor = getattr(module, f"{kind}ImageProcessorPil").from_dict(fields)
    given = [image.convert("RGB") for image in images]
    made = [processor(image, return_tensors="np")["pixel_values"][0] for image in given]
    return np.stack(made).transpose(0, 2, 3, 1)


CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "resnet": ("ConvNext", RESNET),
    "convnext-defaults": ("ConvNext", {"image_processor_type": "ConvNextImageProcessor"}),
    "convnext-odd": (
        "ConvNext",
        RESNET | {"size": {"shortest_edge": 61}, "crop_pct": 0.9, "resample": 2},
    ),
    "convnext-both-crops": (
        "ConvNext",
        RESNET | {"size": 60, "do_center_crop": True, "crop_size": {"height": 31, "width": 70}},
    ),
    "mobilenet": (
        "MobileNetV2",
        {
            "image_processor_type": "MobileNetV2ImageProcessor",
            "size": {"shortest_edge": 256},
            "crop_size": {"height": 224, "width": 224},
            "resample": 2,
        },
    ),
    "mobilenet-defaults": (
        "MobileNetV2",
        {"image_processor_type": "MobileNetV2ImageProcessorFast"},
    ),
    "mobilenet-padded": (
        "MobileNetV2",
        {
            "image_processor_type": "MobileNetV2ImageProcessor",
            "size": 40,
            "crop_size": 63,
            "resample": 1,
        },
    ),
    "mobilenet-crop-alone": (
        "MobileNetV2",
        {
            "image_processor_type": "MobileNetV2ImageProcessor",
            "do_resize": False,
            "do_rescale": False,
            "image_mean": 120.5,
            "image_std": [50, 60.5, 70],
        },
    ),
    "mobilenet-bytes": (
        "MobileNetV2",
        {
            "image_processor_type": "MobileNetV2ImageProcessor",
            "do_normalize": False,
            "rescale_factor": 0.01,
            "resample": 5,
        },
    ),
    "vit": ("ViT", {"image_processor_type": "ViTImageProcessor", "size": 50, "resample": 0}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_as_transformers(tmp_path: Path, name: str) -> None:
    kind, fields = CONFIGS[name]
    images = [picture(*size, MODES[i], seed=i) for i, size in enumerate(SIZES)]
    made = preprocessor(tmp_path, **fields)(images)
    expected = in_transformers(kind, fields, images)
    assert made.dtype == np.float32
    assert made.shape == expected.shape
    assert np.abs(made - expected).max() <= EXACT


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_from_a_file(tmp_path: Path, mode: str) -> None:
    image = picture(90, 50, mode)
    file = tmp_path / ("image.tif" if mode in ("CMYK", "YCbCr") else "image.png")
    image.save(file)
    made = preprocessor(tmp_path, **RESNET)([file, str(file), image])
    expected = in_transformers("ConvNext", RESNET, [image])
    assert np.abs(made - expected).max() <= EXACT


@pytest.mark.slow
def test_without_a_file_it_is_as_usual_for_imagenet(tmp_path: Path) -> None:
    fields = {
        "size": {"shortest_edge": 256},
        "crop_size": {"height": 224, "width": 224},
        "image_mean": list(IMAGENET_MEAN),
        "image_std": list(IMAGENET_STD),
    }
    usual = read_preprocessor(tmp_path, size=224, channels=3)
    image = picture(300, 260)
    expected = in_transformers("MobileNetV2", fields, [image])
    assert np.abs(usual([image]) - expected).max() <= EXACT
    assert usual.size == (224, 224)
    small = read_preprocessor(tmp_path, size=32, channels=3)
    assert small.config.shortest_edge == 36
    assert small([image]).shape == (1, 32, 32, 3)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_is_turned_upright(tmp_path: Path, orientation: int) -> None:
    """The tag says where the first row and column of the stored image are (Exif 3.0, 4.6.5)."""
    turned: dict[int, Callable[[NDArray[Any]], NDArray[Any]]] = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
        8: lambda a: np.rot90(a),
    }
    image = picture(40, 30)
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(tmp_path / "photo.png", exif=exif)
    as_is = preprocessor(tmp_path, image_processor_type="ViTImageProcessor", do_resize=False)
    upright = turned[orientation](np.asarray(image))
    made = as_is([tmp_path / "photo.png"])
    assert np.array_equal(made, as_is([upright]))


def test_arrays(tmp_path: Path) -> None:
    image = picture(301, 207)
    pixels = np.asarray(image)
    made = preprocessor(tmp_path, **RESNET)
    expected = made([image])
    assert np.array_equal(made([pixels]), expected)
    assert np.array_equal(made(np.stack([pixels, pixels])), np.concatenate([expected, expected]))
    for dtype in (np.float32, np.float64):
        floats = made([pixels.astype(dtype) / 255])
        # Of bytes, but not of floats, Pillow rounds both passes of its filter to whole numbers;
        # what the first one rounds grows in the second, whose weights' sizes add up to 5/4.
        assert np.abs(floats - expected).max() <= (0.5 * 1.25 + 0.5) / 255 / min(IMAGENET_STD)
    whole = pixels[:224, :224] / 255
    plain = preprocessor(tmp_path, **RESNET | {"do_resize": False})
    assert np.abs(plain([whole]) - plain([pixels[:224, :224]])).max() <= EXACT


def in_16_bits(image: Image.Image) -> bytes:
    """A PNG file of RGB with 16 bits a value, which Pillow reads and does not write."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    values = np.asarray(image).astype(">u2") * 257
    header = struct.pack(">IIBBBBB", image.width, image.height, 16, 2, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + row.tobytes() for row in values.astype(">u2")))
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


FIRST, SECOND = picture(40, 30, "P", seed=1), picture(40, 30, "P", seed=2)
ODD_FILES: dict[str, tuple[bytes, Image.Image]] = {
    "16 bits of each colour": (in_16_bits(picture(40, 30)), picture(40, 30)),
    "one pixel": (encoded(picture(1, 1), "PNG"), picture(1, 1)),
    "one row": (encoded(picture(300, 1), "PNG"), picture(300, 1)),
    "one column": (encoded(picture(1, 300), "PNG"), picture(1, 300)),
    "grey with alpha": (encoded(picture(40, 30, "LA"), "PNG"), picture(40, 30, "L")),
    "an animation": (encoded(FIRST, "GIF", save_all=True, append_images=[SECOND]), FIRST),
    "more after its end": (encoded(picture(40, 30), "PNG") + b"more", picture(40, 30)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD_FILES)
def test_odd_files(tmp_path: Path, name: str) -> None:
    data, expected = ODD_FILES[name]
    (tmp_path / "image.jpg").write_bytes(data)  # the content counts, not the ending
    made = preprocessor(tmp_path, **RESNET)
    assert np.array_equal(made([tmp_path / "image.jpg"]), made([expected]))


@pytest.mark.slow
def test_a_jpeg_for_printing(tmp_path: Path) -> None:
    file = tmp_path / "image.jpg"
    picture(40, 30, "CMYK").save(file)
    made = preprocessor(tmp_path, **RESNET)
    with Image.open(file) as image:
        assert image.mode == "CMYK"
        expected = in_transformers("ConvNext", RESNET, [image])
    assert np.abs(made([file]) - expected).max() <= EXACT


def test_floats_of_every_width(tmp_path: Path) -> None:
    as_is = preprocessor(tmp_path, image_processor_type="ViTImageProcessor", do_resize=False)
    exact = np.asarray(picture(9, 8)) // 16 / np.float32(16)  # exact in every type
    expected = as_is([exact])
    for dtype in (np.float64, np.longdouble, np.float16, ml_dtypes.bfloat16):
        assert np.array_equal(as_is([exact.astype(dtype)]), expected), dtype


def test_floats_stay_between_black_and_white(tmp_path: Path) -> None:
    made = preprocessor(tmp_path, **RESNET | {"do_normalize": False, "size": 50})
    edge = np.repeat([0.0, 1.0], 6)[None, :, None]
    values = made([np.tile(edge, (12, 1, 3))])
    assert (values.min(), values.max()) == (0, 1)


def test_an_image_of_16_bits_is_not_cut_off(tmp_path: Path) -> None:
    values = (257 * np.arange(256, dtype=np.uint16)).reshape(16, 16)
    Image.fromarray(values).save(tmp_path / "deep.png")
    as_is = {"image_processor_type": "ViTImageProcessor", "do_resize": False}
    made = preprocessor(tmp_path, **as_is, do_rescale=False, do_normalize=False)
    assert np.array_equal(made([tmp_path / "deep.png"])[0, :, :, 1], values // 257)


def test_a_palette_with_transparency_warns_of_nothing(tmp_path: Path) -> None:
    image = picture(20, 20, "P")
    image.save(tmp_path / "clear.png", transparency=bytes(range(256)))
    as_is = preprocessor(tmp_path, image_processor_type="ViTImageProcessor", do_resize=False)
    assert np.array_equal(as_is([tmp_path / "clear.png"]), as_is([image]))


def test_one_channel_is_grey(tmp_path: Path) -> None:
    fields = {"image_processor_type": "ViTImageProcessor", "size": 20, "image_mean": [0.5]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(fields | {"image_std": 0.5}))
    grey = read_preprocessor(tmp_path, size=20, channels=1)
    image = picture(20, 20)
    values = np.asarray(image.convert("L"), np.float32)[None, :, :, None]
    assert np.abs(grey([image]) - (values / 255 - 0.5) / 0.5).max() <= EXACT
    floats = grey([np.asarray(image.convert("L"))[:, :, None] / 255])
    assert np.abs(floats - grey([image])).max() <= EXACT


@pytest.mark.slow
def test_an_array_needs_no_pillow() -> None:
    code = (
        "import sys, numpy as np\n"
        "from gptrs.images.preprocess import Preprocessor\n"
        "from gptrs.images.preprocessor_config import PreprocessorConfig\n"
        "config = PreprocessorConfig(crops=((4, 4),))\n"
        "made = Preprocessor(config)([np.zeros((8, 8, 3), np.uint8)])\n"
        "assert made.shape == (1, 4, 4, 3) and 'PIL' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
