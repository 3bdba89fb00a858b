"""``gptrs validate``: compare a model's logits with torch's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from gptrs.cli.model_argument import (
    AsJson,
    ModelName,
    ModelOption,
    RandomConfig,
    either,
    numbers,
    opened,
    print_table,
    said,
    shape_words,
)
from gptrs.cli.running import Backend, KvCache, Threads

if TYPE_CHECKING:
    from gptrs.parity.validate import Check, Validation

_HEADS = ("logits of", "shape", "max abs", "max rel", "tolerance", "same choice", "")


def validate(
    model: ModelName = None,
    model_option: ModelOption = None,
    config: RandomConfig = None,
    as_json: AsJson = False,
    backend: Backend = None,
    threads: Threads = 0,
    kv_cache: KvCache = None,
) -> None:
    """Compare a model's logits with those of transformers' model of the same files.

    gptrs validate stories
    """
    model = either(model, model_option)
    with opened(model, config, backend, threads, kv_cache and kv_cache.value) as handle:
        from gptrs.parity.validate import validate as compare  # it loads torch

        done = compare(handle)
    name = said(model, config)
    if as_json:
        typer.echo(json.dumps(_report(name, done), ensure_ascii=False, allow_nan=False))
    else:
        print_table(_HEADS, map(_row, done.checks), (2, 3, 4, 5))
        typer.echo(f"\n{name} ({', '.join(done.dtypes)}): {_verdict(done)}")
    if done.failed:
        raise typer.Exit(1)


def _row(check: Check) -> tuple[str, ...]:
    max_abs, max_rel, _ = numbers(check.difference)
    apart = f"{check.difference.tolerance:.2e}"
    choices = f"{check.same} of {check.choices}"
    verdict = "agrees" if check.agrees else "differs"
    return check.name, shape_words(check.shape), max_abs, max_rel, apart, choices, verdict


def _verdict(done: Validation) -> str:
    if not done.failed:
        return f"all {len(done.checks)} agree with {done.torch_name}"
    first = done.failed[0]
    return (
        f"{len(done.failed)} of {len(done.checks)} differ from {done.torch_name}, first the logits"
        f" of {first.name}: max abs {first.difference.max_abs:.2e}, expected up to"
        f" {first.difference.tolerance:.2e}"
    )


def _report(name: str, done: Validation) -> dict[str, Any]:
    checks = [
        {
            "name": check.name,
            "shape": list(check.shape),
            **check.difference.as_json(),
            "choices": check.choices,
            "same_choices": check.same,
            "agrees": check.agrees,
        }
        for check in done.checks
    ]
    return {
        "model": name,
        "torch": done.torch_name,
        "dtypes": list(done.dtypes),
        "agrees": not done.failed,
        "checks": checks,
    }
