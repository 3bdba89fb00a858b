"""``gptrs info``: configuration and tensors of a model's files."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptrs.byte_sizes import size_text
from gptrs.cli.lines import print_lines
from gptrs.cli.model_argument import ModelOption, either, needed
from gptrs.cli.names import printable
from gptrs.cli.shell_completion import complete_model

if TYPE_CHECKING:
    from gptrs.formats.model_files import ModelFiles
    from gptrs.formats.stored_tensor import StoredTensor

_LONGEST = 60  # letters of a value of the configuration


def info(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="A checkpoint (GPTRSCHK), a tensor archive (GPTRSTEN), a .safetensors file, a"
            " Hugging Face directory, or a model that ships with gptrs.",
            autocompletion=complete_model,
        ),
    ] = None,
    model_option: ModelOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the configuration of a model, and its tensors with their sizes and ids.

    gptrs info path/to/model
    """
    place = needed(either(path, model_option))
    from gptrs.formats.model_files import open_files
    from gptrs.loading.hub import place_of  # loads after the options are known to be good

    files = open_files(place_of(place), as_stored=True)
    if as_json:
        typer.echo(json.dumps(_report(files)))
    else:
        _print(files)


def _report(files: ModelFiles) -> dict[str, Any]:
    from gptrs.params import base_param_id

    tensors = [
        {
            "name": tensor.key,
            "dtype": _dtype(tensor),
            "shape": list(tensor.shape),
            "bytes": tensor.length,
            "id": f"{base_param_id(tensor.key):032x}",
            "file": str(tensor.file.path),
        }
        for tensor in files.tensors
    ]
    return {
        "file": str(files.tensors.place),
        "kind": files.kind,
        "config": files.config,
        "runtime": files.runtime,
        "tensors": tensors,
        "elements": sum(tensor.elements for tensor in files.tensors),
        "bytes": sum(tensor.length for tensor in files.tensors),
    }


def _print(files: ModelFiles) -> None:
    """Print tables; that of the configuration has no width limit where the output is no
    terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from gptrs.params import base_param_id

    console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False)
    entries: dict[str, object] = {"kind": files.kind} if files.kind_field else {}
    entries |= files.config
    if files.runtime:
        entries["runtime"] = files.runtime
    if entries:
        config = Table("configuration", "", box=None, header_style="bold")
        for name, value in entries.items():
            config.add_row(Text(printable(name)), Text(_short(value)))
        console.print(config)
        console.print()
    tensors = list(files.tensors)
    rows = [
        (
            printable(tensor.key),
            _dtype(tensor),
            "[" + ",".join(map(str, tensor.shape)) + "]",
            f"{tensor.length:,}",
            f"{base_param_id(tensor.key):032x}",
        )
        for tensor in tensors
    ]
    print_lines(("tensor", "dtype", "shape", "bytes", "id"), rows, right=(3,))
    elements, size = sum(t.elements for t in tensors), sum(t.length for t in tensors)
    typer.echo(f"\n{len(tensors)} tensors, {elements:,} elements, {size_text(size)}")


def _dtype(tensor: StoredTensor) -> str:
    return tensor.spelled if tensor.dtype is None else str(tensor.dtype)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
