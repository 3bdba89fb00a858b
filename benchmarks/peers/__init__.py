"""Other ways to run GPT-2 124M, each in a module that is imported when it is asked for.

Such a module defines ``sides(directory, threads)``, the ways to run the f32 model in ``directory``
by name. Some also define ``quickest(directory, threads)``, the way that is ready soonest.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.gpt2_directory import Side

REQUIRED = {  # by the name of a peer: what must be installed
    "torch": ("torch", "transformers"),
    "compile": ("torch",),
    "onnxruntime": ("onnxruntime", "onnx"),
    "openvino": ("openvino", "onnx"),
    "llama_cpp": ("llama_cpp", "gguf"),
    "ctranslate2": ("ctranslate2", "transformers"),
    "jax": ("jax",),
}
QUICK = tuple(name for name in REQUIRED if name != "compile")  # those with ``quickest``


def missing(peer: str) -> list[str]:
    """What ``peer`` lacks to run here."""
    return [module for module in REQUIRED[peer] if find_spec(module) is None]


def _module(peer: str) -> Any:
    return import_module(f"benchmarks.peers.{peer}_side")


def sides(peer: str, directory: Path, threads: int) -> dict[str, Side]:
    """The ways in which ``peer`` runs the model, by name."""
    return _module(peer).sides(directory, threads)


def quickest(peer: str, directory: Path, threads: int) -> Side:
    """The way of ``peer`` that is ready soonest, for peers in `QUICK`."""
    return _module(peer).quickest(directory, threads)
