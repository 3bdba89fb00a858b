"""Other ways to run the models, each in a module that is imported when it is asked for.

The module of a peer for a task, ``<peer>_<task>.py``, defines ``sides(directory, threads)``, the
ways to run the f32 model in ``directory`` by name. Some also define ``quickest(directory,
threads)``, the way that is ready soonest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

from benchmarks.gpt2_directory import Side as TextSide
from benchmarks.vision_directory import Side as ImageSide

S = TypeVar("S")

PACKAGES = {  # whose versions are said, where they have another name or several
    "torch": ("torch", "transformers"),
    "compile": ("torch",),
    "llama_cpp": ("llama-cpp-python",),
    "jax": ("jax", "jaxlib"),
}


@dataclass(frozen=True)
class Peers(Generic[S]):
    """The peers of one task, with what each needs to be installed; none of ``slow`` has a
    ``quickest``."""

    task: str
    required: dict[str, tuple[str, ...]]
    slow: tuple[str, ...] = ("compile",)

    def missing(self, peer: str) -> list[str]:
        """What ``peer`` lacks to run here."""
        return [module for module in self.required[peer] if find_spec(module) is None]

    def installed(self, asked: str, say: Callable[[str], object]) -> list[str]:
        """Those of the peers asked for, commas between them, that can run here; of the others it
        is said what they lack."""
        names = [name for name in asked.split(",") if name]
        if unknown := sorted(set(names) - set(self.required)):
            raise SystemExit(f"there is no {unknown[0]!r}, only {', '.join(self.required)}")
        for name in names:
            if lacking := self.missing(name):
                say(f"{name} is left out: not installed: {', '.join(lacking)}")
        return [name for name in names if not self.missing(name)]

    def packages(self, names: list[str]) -> list[str]:
        """The packages of the peers ``names``."""
        return [package for name in names for package in PACKAGES.get(name, (name,))]

    def quick(self, names: list[str]) -> list[str]:
        """Those of ``names`` that have a ``quickest``."""
        return [name for name in names if name not in self.slow]

    def _module(self, peer: str) -> Any:
        return import_module(f"benchmarks.peers.{peer}_{self.task}")

    def sides(self, peer: str, directory: Path, threads: int) -> dict[str, S]:
        """The ways in which ``peer`` runs the model, by name."""
        return self._module(peer).sides(directory, threads)

    def quickest(self, peer: str, directory: Path, threads: int) -> S:
        """The way of ``peer`` that is ready soonest, for peers that are `quick`."""
        return self._module(peer).quickest(directory, threads)


GPT2 = Peers[TextSide](
    "gpt2",
    {
        "torch": ("torch", "transformers"),
        "compile": ("torch",),
        "onnxruntime": ("onnxruntime", "onnx"),
        "openvino": ("openvino", "onnx"),
        "llama_cpp": ("llama_cpp", "gguf"),
        "ctranslate2": ("ctranslate2", "transformers"),
        "jax": ("jax",),
    },
)
IMAGES = Peers[ImageSide](
    "images",
    {
        "torch": ("torch", "transformers"),
        "compile": ("torch",),
        "onnxruntime": ("onnxruntime", "onnx"),
        "openvino": ("openvino", "onnx"),
    },
)
