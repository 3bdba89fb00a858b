"""Array files of commands: ``.npy``, ``.npz`` and tensor archives, detected by their first bytes.

Inputs of ``gptrs forward`` and `gptrs.loading.batches`, outputs of ``--out``. Nothing is unpickled;
the size of an unpacked ``.npz`` is bounded before memory is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from gptrs.byte_sizes import size_text
from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.archive import MAGIC, SUFFIX, read_archive, write_archive
from gptrs.formats.atomic_write import atomic_write, check_replaceable
from gptrs.formats.byte_file import ByteFile
from gptrs.ir.types import Array

SUFFIXES = (".npy", ".npz", SUFFIX)
_NPY = b"\x93NUMPY"
_NPZ = (b"PK\x03\x04", b"PK\x05\x06")  # of a zip file, and of an empty one
_RATIO = 16  # images compress to about a tenth of their size
_SMALL = 2**28  # bytes that any file may unpack to


def read_arrays(path: Path) -> dict[str, Array] | None:
    """The arrays of a file by their names, that of a ``.npy`` file by its stem.

    None when the file has none of these formats. Nothing is unpickled. Raises `LoadError` for
    a file that is missing or damaged.
    """
    try:
        begin = bytes(ByteFile(path).begin(len(MAGIC)))
    except FileNotFoundError:
        raise LoadError(f"{path} does not exist", fix="give the path of a file") from None
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error}") from None
    if begin == MAGIC:
        return read_archive(path)
    try:
        if begin.startswith(_NPY):
            # mmap compares the header with the size before memory is taken.
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            return {path.stem: np.array(cast("Array", mapped))}
        if begin.startswith(_NPZ):
            with path.open("rb") as file:
                return _unpacked(path, file)
    except LoadError:
        raise
    except Exception as error:  # the zip and header parsers raise many types
        raise LoadError(
            f"{path} cannot be read as NumPy arrays: {error}",
            fix="save it again with numpy.save or numpy.savez",
        ) from None
    return None


def _unpacked(path: Path, file: IO[bytes]) -> dict[str, Array]:
    """The arrays of a zip file, whose unpacked size is bounded by its directory first."""
    size = file.seek(0, 2)
    with ZipFile(file) as packed:
        members, most = packed.infolist(), _RATIO * size + _SMALL
        if (unpacked := sum(member.file_size for member in members)) > most:
            raise LoadError(
                f"{path} has {size_text(size)} and unpacks to {size_text(unpacked)},"
                f" expected at most {size_text(most)}",
                fix="save it with numpy.savez, which does not compress, or as .npy files",
            )
        return {m.filename.removesuffix(".npy"): _member(path, packed, m) for m in members}


def _member(path: Path, packed: ZipFile, member: ZipInfo) -> Array:
    at = f"{path}, member {member.filename!r}:"
    fix = "save the arrays again with numpy.savez"
    if member.compress_type not in (
        ZIP_STORED,
        ZIP_DEFLATED,
    ):  # others cannot be unpacked in pieces
        raise LoadError(f"{at} its way to compress is none of NumPy's", fix=fix)
    with packed.open(member) as unpacked:
        if unpacked.read(len(_NPY)) != _NPY:
            raise LoadError(f"{at} found no array, expected what numpy.save writes", fix=fix)
        unpacked.seek(0)
        try:
            array: Any = np.lib.format.read_array(unpacked, allow_pickle=False)
        except BadZipFile:
            raise
        except Exception as error:  # headers may hold anything
            raise LoadError(f"{at} {error}", fix=fix) from None
        if unpacked.read(1):
            header = f"{array.dtype}{list(array.shape)}"
            raise LoadError(f"{at} found more bytes than its header says, {header}", fix=fix)
    return array


def choose(arrays: Mapping[str, Array], path: Path, names: tuple[str, ...]) -> Array:
    """The array with the first of ``names`` that exists, else the only array.

    Raises `LoadError` naming the file.
    """
    for name in names:
        if name in arrays:
            return arrays[name]
    if len(arrays) != 1:
        wanted = " or ".join(map(repr, names))
        found = ", ".join(map(repr, sorted(arrays)[:8]))
        raise LoadError(
            f"{path} holds {len(arrays)} arrays{': ' * bool(found)}{found},"
            f" expected one, or one called {wanted}"
        )
    return next(iter(arrays.values()))


def check_target(path: Path) -> None:
    """Raise `ArgumentError` unless ``path`` has one of `SUFFIXES` and is a regular file or
    absent."""
    if path.suffix not in SUFFIXES:
        raise ArgumentError(
            f"{path} ends in {path.suffix!r}, expected one of {', '.join(SUFFIXES)}",
            fix=f"name it {path.stem}{SUFFIXES[0]}",
        )
    check_replaceable(path)


def write_array(path: Path, name: str, array: Array) -> None:
    """Write one array in the format of the suffix of ``path``, atomically.

    NumPy's files have no bf16 and no fp8: there these become f32. Raises `ArgumentError`.
    """
    check_target(path)
    if path.suffix == SUFFIX:
        write_archive(path, {name: array})
        return
    if array.dtype.isbuiltin != 1:
        array = array.astype(np.float32)
    with atomic_write(path) as file:
        if path.suffix == ".npy":
            np.save(file, array)
        else:
            np.savez(file, allow_pickle=False, **{name: array})
