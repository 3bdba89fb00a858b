"""Profiles as files: Chrome's trace events, speedscope's flame graphs, JSON lines.

The formats are described at https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSs
KchNAySU (trace events) and https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from gptrs.debug.profile.steps import ProfiledStep, Span


def trace_events(spans: Sequence[Span], start: float) -> str:
    """A track for each thread: runs with their steps inside, workers with their chunks."""
    process = os.getpid()
    threads = dict.fromkeys(span.thread for span in spans)
    workers = {span.thread for span in spans if span.kind == "chunks"}
    events: list[dict[str, Any]] = []
    for number, thread in enumerate(threads):
        name = f"worker {number}" if thread in workers else "calling thread"
        about = {"ph": "M", "pid": process, "tid": thread}
        events.append({**about, "name": "thread_name", "args": {"name": name}})
        events.append({**about, "name": "thread_sort_index", "args": {"sort_index": number}})
    events += [_event(span, process, start) for span in spans]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, ensure_ascii=False)


def _event(span: Span, process: int, start: float) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": span.name,
        "cat": span.kind,
        "pid": process,
        "tid": span.thread,
        "ts": round((span.start - start) / 1e3, 3),
        "dur": round((span.end - span.start) / 1e3, 3),
        "args": {} if span.step is None else _about(span.step),
    }


def _about(step: ProfiledStep) -> dict[str, Any]:
    return {
        "op": step.op,
        "line": step.line,
        "function": step.function,
        "module": step.module,
        "result": step.result,
        "flops": step.flops,
        "bytes": step.bytes,
    }


def speedscope(steps: Sequence[ProfiledStep]) -> str:
    """A flame graph: program, layers, line and kernel, as wide as the time of the steps."""
    numbers: dict[tuple[str, str, int], int] = {}
    samples: list[list[int]] = []
    weights: list[float] = []
    for step in steps:
        file, _, line = step.line.replace(", line ", ":").rpartition(":")  # see `Location.place`
        frames = [(step.program, "", 0)]
        parts = step.module.split(".") if step.module else []
        frames += [(".".join(parts[:n]), "", 0) for n in range(1, len(parts) + 1)]
        if step.line:
            frames.append((step.function, file, int(line)))
        frames.append((step.kernel, "", 0))
        samples.append([numbers.setdefault(frame, len(numbers)) for frame in frames])
        weights.append(round(step.ns, 1))
    return json.dumps(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": "gptrs",
            "shared": {
                "frames": [
                    {"name": name, **({"file": file, "line": line} if file else {})}
                    for name, file, line in numbers
                ]
            },
            "profiles": [
                {
                    "type": "sampled",
                    "name": "steps",
                    "unit": "nanoseconds",
                    "startValue": 0,
                    "endValue": round(sum(weights), 1),
                    "samples": samples,
                    "weights": weights,
                }
            ],
        },
        ensure_ascii=False,
    )


def jsonl(steps: Sequence[ProfiledStep]) -> str:
    """A line for each step, in the order of their plans."""
    lines = [
        json.dumps(
            {
                "program": step.program,
                "step": step.number,
                "kind": step.kind,
                "kernel": step.kernel,
                **_about(step),
                "calls": step.calls,
                "ns": round(step.ns, 1),
            },
            ensure_ascii=False,
        )
        for step in steps
    ]
    return "".join(f"{line}\n" for line in lines)
