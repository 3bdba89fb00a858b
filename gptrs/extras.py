"""Extras: optional dependencies, and the one error where an import lacks one.

The core needs NumPy, Numba, llvmlite and ml_dtypes alone. Other dependencies are imported on use,
inside `needed_for`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from gptrs.errors import MissingPackageError

EXTRAS = {
    "models": {"blake3": "blake3"},
    "text": {"tokenizers": "tokenizers", "jinja2": "Jinja2"},
    "images": {"PIL": "Pillow"},
    "cli": {"typer": "typer", "rich": "rich", "threadpoolctl": "threadpoolctl"},
    "bench": {"gptrs_bench": "gptrs_bench", "yaml": "PyYAML", "safetensors": "safetensors"},
    "plot": {"matplotlib": "matplotlib"},
    "hub": {"huggingface_hub": "huggingface_hub"},
    "onnx": {"onnx": "onnx"},
    "opencl": {"pyopencl": "pyopencl"},
    "webgpu": {"wgpu": "wgpu"},
    "cuda": {"cuda": "cuda-bindings"},
    "triton": {"triton": "triton"},
    "torch": {"torch": "torch", "transformers": "transformers"},
}
"""Extra → what it brings: modules, and the packages they are installed with."""

_ALL = ("models", "text", "images", "cli")  # what the extra ``all`` brings


@contextmanager
def needed_for(what: str, *, instead: str = "") -> Generator[None]:
    """In the block, the lack of a module of `EXTRAS` is a `MissingPackageError`.

    ``what`` is what the module is imported for, ``instead`` what does without it. Modules that are
    installed and fail raise their own errors.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        for extra, modules in EXTRAS.items():
            if module in modules:
                fixes = [f"pip install 'gptrs[{extra}]'"]
                if extra in _ALL:
                    fixes.append("'gptrs[all]' for models, text, images and the command line")
                raise MissingPackageError(
                    f"{what} needs {modules[module]}, which is not installed",
                    fix=", or ".join([*fixes, *([instead] if instead else [])]),
                ) from None
        raise
