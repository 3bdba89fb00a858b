"""The backends by name."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from gptrs.backends.base import Backend
from gptrs.errors import ArgumentError

BACKENDS: dict[str, str] = {
    "faer": "gptrs.backends.faer.backend:FaerBackend",
    "reference": "gptrs.backends.reference:ReferenceBackend",
}
"""Where each backend's class is; it is imported when the backend is first used."""


@cache
def get_backend(name: str) -> Backend:
    """The backend called ``name``. Raises `ArgumentError` listing the known ones."""
    if name not in BACKENDS:
        raise ArgumentError(
            f"there is no backend {name!r}",
            fix=f"use one of: {', '.join(sorted(BACKENDS))} (GPTRS_BACKEND, ptir.jit(backend=...))",
        )
    module, _, attribute = BACKENDS[name].partition(":")
    backend: Backend = getattr(import_module(module), attribute)()
    return backend
