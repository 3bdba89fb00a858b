"""onnxruntime sessions: CPU, sequential execution."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

onnxruntime: Any = import_module("onnxruntime")


def session(file: Path, threads: int, **sizes: int) -> Any:
    """A session for ``file``; ``sizes`` are those of dimensions that have a name in it."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    for name, size in sizes.items():
        options.add_free_dimension_override_by_name(name, size)
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(str(file), options, providers=providers)
