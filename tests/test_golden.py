"""Programs of tiny models as they were traced and after the passes, kept under tests/golden.

A change of a program shows up in review. `python -m tests.test_golden` writes them anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gptrs.ir.parsing import parse
from gptrs.ir.tensor import Parameter
from gptrs.models.gpt2 import GPT2, GPT2Config

FOLDER = Path(__file__).parent / "golden"


def _gpt2() -> dict[str, str]:
    """One layer: a whole prompt, and the last logits of new tokens over a cache."""
    config = GPT2Config(vocab_size=11, n_positions=16, n_embd=8, n_layer=1, n_head=2)
    model = GPT2.build(config, lambda name, shape: Parameter(np.zeros(shape, np.float32), name))
    tokens = np.zeros((2, 3), np.int64)
    cache = model.init_cache(np.zeros(2, np.int32), 8)
    jitted = type(model).__call__
    return {
        "gpt2": str(jitted.program(model, tokens)),
        "gpt2_lowered": str(jitted.lowered(model, tokens)),
        "gpt2_cached": str(jitted.program(model, tokens, cache, logits="last")),
        "gpt2_cached_lowered": str(jitted.lowered(model, tokens, cache, logits="last")),
    }


PROGRAMS = _gpt2()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_unchanged(name: str) -> None:
    golden = (FOLDER / f"{name}.ptir").read_text(encoding="utf-8")
    assert PROGRAMS[name] == golden, "if this is meant, run: python -m tests.test_golden"
    assert str(parse(golden)) == golden


if __name__ == "__main__":
    for name, text in PROGRAMS.items():
        (FOLDER / f"{name}.ptir").write_text(text, encoding="utf-8")
