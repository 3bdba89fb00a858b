"""Backend lookup by name: built-in backends, registered classes, entry points of installed
packages.

A package offers a backend by an entry point of the group `GROUP`, whose name is the backend's and
whose value is its class::

    [project.entry-points."gptrs.backends"]
    mine = "my_package.backend:MyBackend"
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from gptrs.backends.base import Backend
from gptrs.collector import rare_collections
from gptrs.entry_points import described, installed_entry_points, load_entry_point
from gptrs.errors import ArgumentError
from gptrs.locks import late_import

B = TypeVar("B", bound=Backend)

BACKENDS: dict[str, str] = {
    "cuda": "gptrs.backends.cuda.backend:CudaBackend",
    "faer": "gptrs.backends.faer.backend:FaerBackend",
    "hiprtc": "gptrs.backends.hip.backend:HiprtcBackend",
    "nvrtc": "gptrs.backends.cuda.backend:NvrtcBackend",
    "opencl": "gptrs.backends.opencl.backend:OpenCLBackend",
    "metal": "gptrs.backends.torch.backend:MetalBackend",
    "reference": "gptrs.backends.reference:ReferenceBackend",
    "rocm": "gptrs.backends.hip.backend:RocmBackend",
    "torch": "gptrs.backends.torch.backend:TorchCpuBackend",
    "webgpu": "gptrs.backends.webgpu.backend:WebGPUBackend",
    "xpu": "gptrs.backends.torch.backend:XpuBackend",
}
"""The class of each built-in backend; it is imported when the backend is first used."""

GROUP = "gptrs.backends"
"""The entry points that name backends."""

_registered: dict[str, type[Backend]] = {}
_instances: dict[str, Backend] = {}


def get_backend(name: str) -> Backend:
    """The backend called ``name``, one instance for the process.

    Raises `ArgumentError` listing the known ones.
    """
    found = _instances.get(name)
    if found is None:
        # Of two threads that race here, one makes an instance that is dropped.
        found = _instances.setdefault(name, backend_class(name)())
    return found


def register_backend(name: str, backend: type[B]) -> type[B]:
    """Register the class ``backend`` as ``name`` in this process, and return it.

    Raises `ArgumentError` when the name belongs to another class, or when the class is no backend:
    it derives from `Backend`, has no abstract method left and has the attribute ``name`` equal to
    ``name``.
    """
    _check(name, backend, "register_backend")
    path = f"{backend.__module__}:{backend.__qualname__}"
    others = [
        described(entry) for entry in installed_entry_points(GROUP, name) if entry.value != path
    ]
    owner = BACKENDS.get(name) or next(iter(others), None)
    if owner is None:
        other = _registered.setdefault(name, backend)
        owner = None if other is backend else f"{other.__module__}:{other.__qualname__}"
    if owner is not None:
        raise ArgumentError(
            f"there is a backend {name!r} already: {owner}",
            fix=f"choose another name for {backend.__qualname__}",
        )
    return backend


def is_made(name: str) -> bool:
    """Whether `get_backend` was asked for ``name`` before."""
    return name in _instances


def known_backends() -> tuple[str, ...]:
    """The names of all backends that `get_backend` can find."""
    return tuple(
        sorted({*BACKENDS, *_registered, *(e.name for e in installed_entry_points(GROUP))})
    )


def backend_path(name: str) -> str | None:
    """``module:Class`` of a backend that another process finds too; None for one that was
    registered in this process."""
    if name in BACKENDS:
        return BACKENDS[name]
    return next((entry.value for entry in installed_entry_points(GROUP, name)), None)


def backend_class(name: str) -> type[Backend]:
    """The class of the backend ``name``. Raises `ArgumentError` listing the known ones."""
    if name in _registered:
        return _registered[name]
    if name in BACKENDS:
        module, _, attribute = BACKENDS[name].partition(":")
        with rare_collections():
            return getattr(late_import(module), attribute)
    loaded = load_entry_point(GROUP, name, "a backend")
    if loaded is None:
        raise ArgumentError(
            f"there is no backend {name!r}",
            fix=f"use one of: {', '.join(known_backends())} (GPTRS_BACKEND,"
            " ptir.jit(backend=...)), or add one with ptir.register_backend",
        )
    entry, found = loaded
    _check(name, found, described(entry))
    return found


def _check(name: object, backend: Any, what: str) -> None:
    """Raise `ArgumentError`, which begins with ``what``, for a class that is no usable backend."""
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"{what}: a backend's name is a word, found {name!r}")
    if not isinstance(backend, type) or not issubclass(backend, Backend):
        raise ArgumentError(
            f"{what}: {backend!r} is no class of a backend",
            fix="derive it from gptrs.backends.base.Backend, and pass the class",
        )
    if inspect.isabstract(backend):
        missing = ", ".join(sorted(backend.__abstractmethods__))
        raise ArgumentError(
            f"{what}: {backend.__qualname__} has no {missing}",
            fix=f"write what gptrs.backends.base.Backend says of {missing}",
        )
    own = getattr(backend, "name", None)
    if own != name:
        raise ArgumentError(
            f"{what}: {backend.__qualname__} calls itself {own!r}, expected {name!r}",
            fix=f'write name = "{name}" in the class',
        )
