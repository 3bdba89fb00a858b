"""The benchmark of decoder language models: sizes of its models, and the work of their steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.decoder_directory import CONFIGS, prefill_flops, step_bytes


@pytest.mark.parametrize(
    ("size", "millions", "gflop"),
    [
        ("smollm2-135m", 134.5, 117.8),
        ("qwen3-0.6b", 596.0, 481.5),
        ("llama-3.2-1b", 1235.8, 1014.0),
    ],
)
def test_models_have_the_sizes_of_their_names(
    tmp_path: Path, size: str, millions: float, gflop: float
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS[size]))
    assert step_bytes(tmp_path, "bf16") / 2e6 == pytest.approx(millions, rel=1e-3)
    assert prefill_flops(tmp_path, 512) / 1e9 == pytest.approx(gflop, rel=1e-2)
