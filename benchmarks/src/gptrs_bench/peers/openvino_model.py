"""OpenVINO compilation: f32 throughout, tuned for latency."""

from __future__ import annotations

from importlib import import_module
from typing import Any

openvino: Any = import_module("openvino")


def compile_model(model: Any, threads: int) -> Any:
    """``model`` as read, for the CPU."""
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "KV_CACHE_PRECISION": "f32",
    }
    return openvino.Core().compile_model(model, "CPU", settings)
