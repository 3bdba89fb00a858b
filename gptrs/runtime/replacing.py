"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gptrs.errors import ArgumentError


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """A new file to write to, which takes the place of ``path`` at the end of the block.

    Until then, and when the block raises, ``path`` stays as it is. Raises `ArgumentError` where
    nothing can be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        try:
            with unfinished.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ArgumentError(
            f"{path} cannot be written: {error.strerror or error}",
            fix="give a file in a folder that can be written to",
        ) from None
