"""``gptrs fit``: whether a model fits the memory, and the context and batch that would."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptrs.byte_sizes import read_size, size_text
from gptrs.cli.convert import Floats
from gptrs.cli.model_argument import ModelOption, either, needed
from gptrs.cli.running import KvCache, Threads
from gptrs.cli.shell_completion import complete_model

if TYPE_CHECKING:
    from gptrs.backends.host import MachineMemory
    from gptrs.memory.fitting import Fit


def fit(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A Hugging Face directory, a checkpoint (GPTRSCHK), a .safetensors file, a model"
            " that ships with gptrs, or a config.json alone.",
            autocompletion=complete_model,
        ),
    ] = None,
    model_option: ModelOption = None,
    context: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens in a row; without it all that the model can hold."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Rows of text, or images, at once.")] = 1,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Instead of what this machine has free: 8GB."),
    ] = None,
    dtype: Annotated[
        Floats | None, typer.Option(help="As if the weights were converted to this.")
    ] = None,
    threads: Threads = 0,
    kv_cache: KvCache = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say how much memory a model takes, without reading its weights, and whether it fits.

    Ends with code 1 if it does not.

    gptrs fit path/to/gpt2 --context 1024 --batch 4
    """
    model = needed(either(model, model_option))
    limit = None if memory is None else _limit(memory)
    from gptrs.backends.host import machine_memory
    from gptrs.loading.estimate import memory_of
    from gptrs.memory.fitting import fit as find  # loads after the options are known to be good

    machine = machine_memory()
    found = find(
        memory_of(model, dtype and dtype.value, kv_cache and kv_cache.value),
        machine.available if limit is None else limit,
        context=context,
        batch=batch,
        threads=threads or None,
    )
    if as_json:
        typer.echo(json.dumps(_report(model, found, machine)))
    else:
        _print(found, machine, is_given=limit is not None)
    if not found.fits:
        raise typer.Exit(1)


def _limit(memory: str) -> int:
    try:
        return read_size(memory)
    except ValueError:
        raise typer.BadParameter(
            f"--memory is {memory!r}, expected a size such as 8GB or 500MiB"
        ) from None


def _report(model: str, found: Fit, machine: MachineMemory) -> dict[str, Any]:
    asked = found.asked
    return {
        "model": model,
        "context": asked.context,
        "batch": asked.batch,
        "threads": asked.threads,
        "bytes": {
            "weights": asked.weights,
            "packed": asked.packed,
            "kv_cache": asked.kv_cache,
            "activations": asked.activations,
            "loading": asked.loading,
            "runtime": asked.runtime,
            "total": asked.total,
        },
        "machine": {
            "total": machine.total,
            "available": machine.available,
            "limit": machine.limit,
        },
        "memory": found.limit,
        "fits": found.fits,
        "largest_context": found.context,
        "largest_batch": found.batch,
    }


def _print(found: Fit, machine: MachineMemory, *, is_given: bool) -> None:
    asked = found.asked
    typer.echo(f"{_at(asked.context, asked.batch)}, threads: {asked.threads}")
    typer.echo(f"\n{asked}\n")
    group = "" if machine.limit is None else f", control group at most {size_text(machine.limit)}"
    typer.echo(
        f"machine: {size_text(machine.total)}, {size_text(machine.available)} available{group}"
    )
    where = f"{size_text(found.limit)}" + ("" if is_given else " that are available")
    typer.echo(f"{'fits' if found.fits else 'does not fit'} {where}")
    if found.context is not None and asked.context is not None:
        typer.echo(f"largest context at batch {asked.batch}: {found.context or 'none'}")
        typer.echo(f"largest batch at context {asked.context}: {found.batch or 'none'}")
    else:
        typer.echo(f"largest batch: {found.batch or 'none'}")


def _at(context: int | None, batch: int) -> str:
    return f"images: {batch}" if context is None else f"context: {context}, batch: {batch}"
