"""Calls of every function of ``ptir.nn``, by topic."""

from __future__ import annotations

from tests.numpy_api.nn_calls.attention import ATTENTION
from tests.numpy_api.nn_calls.inputs import Call, call_with
from tests.numpy_api.nn_calls.layers import LAYERS
from tests.numpy_api.nn_calls.losses import LOSSES

__all__ = ["TABLE", "Call", "call_with"]

TABLE: list[Call] = [*LAYERS, *LOSSES, *ATTENTION]
