"""SECURITY.md agrees with the code."""

from __future__ import annotations

from pathlib import Path

import gptrs
from gptrs import settings, tree
from gptrs.formats import array_files
from gptrs.formats.byte_file import memory_for
from gptrs.formats.unsupported import PICKLES
from gptrs.images.decode import FORMATS
from gptrs.text import growth

TEXT = " ".join((Path(gptrs.__file__).parents[1] / "SECURITY.md").read_text().split())


def test_limits_are_those_of_the_code() -> None:
    ratio, small = array_files._RATIO, array_files._SMALL  # pyright: ignore[reportPrivateUsage]
    memory = memory_for(1000) - 2000
    for said in (
        f"one of {', '.join(FORMATS[:-1])} and WebP, so",
        f"at most `{settings.max_pixels.name}`, counted before",
        f"at most {ratio} times its size and {small // 2**20} MiB",
        f"make a text at most {growth.MOST} times as long each",
        f"at most {tree.MOST_LEVELS} levels of containers",
        f"at most twice its size and {memory // 2**20} MiB",
    ):
        assert said in TEXT


def test_what_is_never_opened_is_listed() -> None:
    for suffix in (".bin", ".pt", ".pth", ".pkl"):
        assert suffix in PICKLES
        assert f"`{suffix}`" in TEXT
