"""Memory taken by hostile model files: little more than twice their size, or an error."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.archive import ArchiveFile, write_archive
from gptrs.formats.json_files import read_json
from gptrs.formats.json_text import TooManyValues, decoded, memory_of, parse
from gptrs.formats.safetensors_file import SafetensorsFile
from gptrs.formats.safetensors_writer import write_safetensors
from tests.support.models import tiny_gpt2
from tests.support.traced_memory import least_peak

SIZE = 15_000_000
SCALAR = np.ones(1, np.float32)


def names() -> Iterator[str]:
    return (f"{number:x}" for number in range(SIZE))


def filled(parts: Iterator[bytes]) -> tuple[bytes, int]:
    """As many of ``parts`` as ``SIZE`` bytes hold, and how many these are."""
    taken: list[bytes] = []
    size = 0
    while size < SIZE:
        taken.append(next(parts))
        size += len(taken[-1])
    return b"".join(taken), len(taken)


def header() -> bytes:
    """A safetensors file of empty tensors."""
    entry = '"%s":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},'
    text = b"{" + filled((entry % name).encode() for name in names())[0][:-1] + b"}"
    return len(text).to_bytes(8, "little") + text


def index(head: bytes, stored: bytes) -> bytes:
    """A checkpoint or an archive of empty tensors."""
    end = b"_" * 8
    entries, count = filled(
        struct.pack("<I", len(name))
        + name.encode()
        + stored
        # rank, extent, tag, reserved, offset, length
        + struct.pack("<IQIB8sQ", 1, 0, 0, 0, end, 0)
        for name in names()
    )
    at = len(head) + 8 + len(entries)
    body = entries.replace(end, at.to_bytes(8, "little"))
    return head + struct.pack("<II", 4 + len(entries), count) + body


def json_of(begin: str, part: str, end: str) -> bytes:
    return f"{begin}{part * (SIZE // len(part))}{end}".encode()


CONFIG = b'{"kind":"gpt","config":{}}'
FILES: dict[str, Callable[[], bytes]] = {
    "model.safetensors": header,
    "x.gchk": lambda: index(
        b"GPTRSCHK" + struct.pack("<II", 2, len(CONFIG)) + CONFIG, stored=bytes(16)
    ),
    "x.gten": lambda: index(b"GPTRSTEN" + struct.pack("<I", 2), stored=b""),
    "numbers.json": lambda: json_of('{"a":[', "0,", "0]}"),
    "objects.json": lambda: json_of('{"a":[', "{},", "0]}"),
    "deep.json": lambda: json_of("", "[", ""),
    "wide.json": lambda: json_of('{"a":"', "a", '\U0001f600"}'),
    "names.json": lambda: b"{" + filled(f'"{n}":"ab",'.encode() for n in names())[0] + b'"a":0}',
    "long.safetensors": lambda: (
        len(text := b'{"' + b"a" * SIZE + b'":{}}').to_bytes(8, "little") + text
    ),
    "text.json": lambda: json_of('{"a":"', "a", '"}'),
}
READ = {"text.json"}  # and the others are refused

CHILD = """
import resource, sys
from pathlib import Path
from gptrs.errors import LoadError
from gptrs.formats import archive, checkpoint, json_files, safetensors_file
opened = {".json": json_files.read_json, ".gchk": checkpoint.CheckpointFile.open,
          ".gten": archive.ArchiveFile.open, ".safetensors": safetensors_file.SafetensorsFile.open}
for path in map(Path, sys.argv[1:]):
    try:
        opened[path.suffix](path)
        said = "read"
    except LoadError as error:
        said = "refused" if path.name in error.problem and error.fix else "not explained"
    print(path.name, said, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no module resource")
def test_a_process_takes_at_most_twice_the_file(tmp_path: Path) -> None:
    (tmp_path / "tiny.json").write_text("{}")
    for name, made in FILES.items():
        (tmp_path / name).write_bytes(made())
    command = [sys.executable, "-c", CHILD, "tiny.json", *FILES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {name for name, said, _ in rows if said == "read"} == READ | {"tiny.json"}
    assert {name for name, said, _ in rows if said == "refused"} == set(FILES) - READ
    unit = 1 if sys.platform == "darwin" else 1024
    before = int(rows[0][2]) * unit
    for name, _, peak in rows[1:]:
        assert int(peak) * unit - before < 2.1 * SIZE, name


VALUES: dict[str, Callable[[int], str]] = {
    "numbers": lambda count: "[" + "999," * count + "0]",
    "lists": lambda count: "[" + "[]," * count + "0]",
    "objects": lambda count: "[" + '{"":0},' * count + "0]",
    "texts": lambda count: "[" + '"ab",' * count + "0]",
    "letters": lambda count: "[" + '"\u00e9\U0001f600",' * count + "0]",
    "escapes": lambda count: "[" + r'"\ud83d\ude00",' * count + "0]",
    "names": lambda count: "{" + ",".join(f'"{n:x}":"ab"' for n in range(count)) + "}",
    "wide": lambda count: "{" + ",".join(f'"{n:x}\U0001f600":9' for n in range(count)) + "}",
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("count", [5461, 5470, 10930, 20_000])  # where dicts grow, and others
def test_values_take_no_more_than_what_is_said(name: str, count: int) -> None:
    data = bytearray(VALUES[name](count).encode())
    needed = memory_of(data)
    assert parse(decoded(data, needed))
    assert least_peak(lambda: parse(decoded(data, needed))) <= needed
    with pytest.raises(TooManyValues, match="of memory, expected at most 9 B for a file of this"):
        decoded(data, 9)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["gten", "safetensors"])
def test_what_is_written_is_read(tmp_path: Path, suffix: str) -> None:
    """Many small tensors are, and as many as would not be read are not written."""
    write, file = {
        "gten": (write_archive, ArchiveFile),
        "safetensors": (write_safetensors, SafetensorsFile),
    }[suffix]
    write(tmp_path / "x", {f"{number}": SCALAR for number in range(20_000)})
    assert len(file.open(tmp_path / "x").tensors) == 20_000
    with pytest.raises(ArgumentError, match=r"tensors.* bytes|tensors, expected at most \d+ as"):
        write(tmp_path / "y", {f"{number}": SCALAR for number in range(90_000)})
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize("suffix", ["gten", "safetensors"])
def test_names_are_no_longer_than_others_read(tmp_path: Path, suffix: str) -> None:
    write = {"gten": write_archive, "safetensors": write_safetensors}[suffix]
    write(tmp_path / "x", {"a" * 65_535: SCALAR})
    with pytest.raises(ArgumentError, match="65536 letters, expected at most 65535 bytes") as error:
        write(tmp_path / "x", {"a" * 65_536: SCALAR})
    assert len(error.value.problem) < 200


@pytest.mark.slow
def test_an_index_of_many_experts_is_read(tmp_path: Path) -> None:
    """The largest models have 140,000 tensors."""
    place = "model-00001-of-00062.safetensors"
    name = "model.layers.{}.mlp.experts.{}.down_proj.weight_scale_inv"
    places = {name.format(n // 2300, n % 2300): place for n in range(140_000)}
    (tmp_path / "x.json").write_text(json.dumps({"weight_map": places}, indent=2))
    assert read_json(tmp_path / "x.json")["weight_map"] == places


def test_a_name_that_is_there_twice_is_found_at_once(tmp_path: Path) -> None:
    """Names are not compared with each other, which would take minutes."""
    text = "{" + ",".join(f'"{number}":0' for number in range(100_000)) + ',"7":0,"3":0}'
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(LoadError, match="the name '7' is there twice"):
        read_json(tmp_path / "x.json")


def test_a_tensor_is_missing_among_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compared with some of the others alone, none of them long."""
    import difflib

    from gptrs import load

    compared: list[str] = []
    found = difflib.get_close_matches

    def watched(word: str, others: Iterator[str], *, n: int, cutoff: float) -> list[str]:
        compared.extend(others)
        return found(word, compared, n=n, cutoff=cutoff)

    monkeypatch.setattr(difflib, "get_close_matches", watched)
    directory = tiny_gpt2(tmp_path)
    others = {f"h.{number}.attn.x": SCALAR for number in range(1500)} | {"h" * 5000: SCALAR}
    write_safetensors(directory / "model.safetensors", others)
    with pytest.raises(LoadError, match=r"no tensor 'wte.weight'.* \(it has 1501 tensors, such as"):
        load(directory)
    assert len(compared) == 1000
    assert max(map(len, compared)) < 20
