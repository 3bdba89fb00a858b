"""Other ways to run the models, each in a module that is imported when it is asked for.

The module of a peer for a task, ``<peer>_<task>.py``, defines ``sides(directory, threads)``, the
ways to run the model in ``directory`` by name, which is in f32 but for decoders; what it converts
that to is written beside it.
Some also define ``quickest(directory, threads)``, the way that is ready soonest. Both raise
`PeerError` where the peer cannot run this model, or not here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

from gptrs_bench.gpt2 import Side as TextSide
from gptrs_bench.images import Side as ImageSide

S = TypeVar("S")

PACKAGES = {  # whose versions are said, where they have another name or several
    "torch": ("torch", "transformers"),
    "compile": ("torch",),
    "llama_cpp": ("llama-cpp-python",),
    "jax": ("jax", "jaxlib"),
}


def packages(names: Iterable[str]) -> list[str]:
    """The packages of the peers ``names``."""
    return [package for name in names for package in PACKAGES.get(name, (name,))]


class PeerError(Exception):
    """A peer cannot run a model, or nothing here: why, in a line."""


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

    def quick(self, names: list[str]) -> list[str]:
        """Those of ``names`` that have a ``quickest``."""
        return [name for name in names if name not in self.slow]

    def _module(self, peer: str) -> Any:
        return import_module(f"gptrs_bench.peers.{peer}_{self.task}")

    def sides(self, peer: str, directory: Path, threads: int) -> dict[str, S]:
        """The ways in which ``peer`` runs the model, by name. Raises `PeerError`."""
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
DECODERS = Peers[TextSide](
    "decoder",
    {
        "torch": ("torch", "transformers"),
        "compile": ("torch", "transformers"),
        "onnxruntime": ("onnxruntime", "onnx"),
        "openvino": ("openvino",),
        "llama_cpp": ("llama_cpp", "gguf"),
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
BY_KIND: dict[str, Peers[Any]] = {"gpt2": GPT2, "mobilenet_v2": IMAGES, "resnet": IMAGES}
"""``model_type`` → who else runs such models."""
