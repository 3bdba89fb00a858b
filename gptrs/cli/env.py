"""``gptrs env``: this machine, what gptrs uses of it, and its measured limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptrs.byte_sizes import size_text
from gptrs.cli.lines import print_facts, print_lines
from gptrs.cli.names import printable
from gptrs.cli.progress import step_progress
from gptrs.cli.running import Threads
from gptrs.errors import ArgumentError

if TYPE_CHECKING:
    from gptrs.debug.machine_limits import Limits

_PART_OF_MEMORY = 4  # at most so much of what is free is read to measure bandwidth


def env(
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Measure multiply-adds and memory bandwidth, on one thread and on all, in a few"
            " seconds, and keep the figures for profiles.",
        ),
    ] = False,
    threads: Threads = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what this machine is and what gptrs uses of it: versions, CPU, vector instructions,
    threads, settings, the cache of kernels, backends, measured limits.

    gptrs env --measure
    """
    from gptrs.cli.environment import environment  # loads after the options are known to be good
    from gptrs.kernels.driver.threads import limit_threads

    with limit_threads(threads):
        measured = _measured() if measure else []
        report = environment()
    if measured:  # also where they could not be kept
        kept: list[dict[str, Any]] = report["limits"]["measured"]
        new = [vars(limits) for limits in measured]
        others = [row for row in kept if row["threads"] not in {row["threads"] for row in new}]
        report["limits"]["measured"] = sorted([*others, *new], key=lambda row: row["threads"])
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False))
    else:
        _print(report)


def _measured() -> list[Limits]:
    from gptrs.backends.host import machine_memory
    from gptrs.debug.machine_limits import keep_limits
    from gptrs.debug.measure_limits import measure_limits
    from gptrs.kernels.driver.threads import thread_count

    with step_progress() as told:
        found = measure_limits(
            sorted({1, thread_count()}),
            most_bytes=machine_memory().available // _PART_OF_MEMORY,
            told=told,
        )
    try:
        keep_limits(found)
    except ArgumentError as error:
        typer.echo(f"warning: the limits are not kept: {error}", err=True)
    return found


def _print(report: dict[str, Any]) -> None:
    versions: dict[str, str | None] = report["versions"]
    own = [(name, version or "not installed") for name, version in versions.items()]
    print_facts("versions", own)
    typer.echo()
    print_facts("machine", _machine_rows(report["system"], report["cpu"]))
    typer.echo()
    print_facts("used", _used_rows(report))
    changed: dict[str, Any] = report["settings"]
    typer.echo()
    rows = [(name, printable(str(value))) for name, value in changed.items()]
    print_facts("settings", rows or [("all at their defaults", "")])
    typer.echo()
    _print_limits(report["limits"]["measured"])


def _machine_rows(system: dict[str, Any], cpu: dict[str, Any]) -> list[tuple[str, str]]:
    memory: dict[str, int | None] = system["memory"]
    total, available, limit = (memory[name] or 0 for name in ("total", "available", "limit"))
    group = f", control group at most {size_text(limit)}" if limit else ""
    sizes: dict[str, int] = cpu["caches"]
    spelled = ", ".join(f"{name} {size_text(size)}" for name, size in sizes.items())
    return [
        ("system", f"{system['name']}, {system['kernel']}, {system['architecture']}"),
        ("interpreter", system["python"]),
        ("cpu", cpu["model"]),
        ("cores", str(cpu["cores"])),
        ("caches", spelled or "unknown"),
        ("memory", f"{size_text(total)}, {size_text(available)} available{group}"),
    ]


def _used_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    isa, threads = report["isa"], report["threads"]
    level = "none" if isa["level"] is None else f"{isa['level']}, {isa['vector_bits']} bits"
    count = "none" if threads["count"] is None else threads["count"]
    backends: dict[str, str] = report["backends"]
    return [
        ("vectors", f"{level}: {isa['reason']} ({', '.join(isa['offered'])})"),
        ("features", ", ".join(isa["features"]) or "those of every such CPU"),
        ("threads", f"{count}: {threads['reason']}"),
        ("driver", threads["driver"]),
        *(("backend", f"{name}, {printable(source)}") for name, source in backends.items()),
        ("kernel cache", _cache_text(report["cache"])),
    ]


def _cache_text(cache: dict[str, Any]) -> str:
    problem = f"; {cache['problem']}" if cache["problem"] else ""
    if cache["folder"] is None:
        return f"none{problem}"
    place = printable(cache["folder"])
    if not cache["exists"]:
        return f"{place}, not made yet{problem}"
    size, limit = size_text(cache["bytes"]), size_text(cache["limit"])
    return f"{place}: {cache['entries']} kernels, {size} of at most {limit}{problem}"


def _print_limits(measured: list[dict[str, Any]]) -> None:
    if not measured:
        print_facts("limits", [("not measured", "gptrs env --measure")])
        return
    heads = ("threads", "GFLOP/s of f32", "GB/s read", "measured")
    rows = [
        (str(row["threads"]), f"{row['gflops']:.1f}", f"{row['gbytes']:.1f}", row["measured"])
        for row in measured
    ]
    print_lines(heads, rows, right=(0, 1, 2))
