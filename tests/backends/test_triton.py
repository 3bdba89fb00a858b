"""Tile programs: their code for GPUs of two makers, and their results in Triton's interpreter.

Nothing here runs on a GPU.
"""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.c_family.schedule import DTYPES, KernelStep, schedule_of
from gptrs.backends.triton import compiler
from gptrs.backends.triton.compiler import Target
from gptrs.backends.triton.table import TILE_KERNELS
from gptrs.ir.types import DTYPES as TYPES
from gptrs.ir.types import Array
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.backends.test_cuda import LoweredAsOnDevices
from tests.support import ROOT

pytest.importorskip("triton")

TARGETS = [
    Target("cuda", 80, 32),
    Target("cuda", 90, 32),
    Target("cuda", 100, 32),
    Target("hip", "gfx942", 64),
    Target("hip", "gfx1100", 32),
]


def ones(*shape: int, dtype: str) -> Array:
    return np.ones(shape, TYPES[dtype].numpy)


def tile_programs() -> list[Kernel]:
    """Those of a product and of an attention, in two dtypes."""
    found: list[Kernel] = []
    for dtype in ("f32", "bf16"):
        q, k = ones(2, 4, 70, 64, dtype=dtype), ones(2, 2, 90, 64, dtype=dtype)
        attend = lambda q, k: ptir.attention(q @ q[0, 0].T[:, :64], k, k, causal=True)
        program = lower(
            ptir.jit(attend).lower(q, k).program,
            Context(LoweredAsOnDevices(), precise=True),
            check=False,
        )
        steps = schedule_of(program, DTYPES, TILE_KERNELS).steps
        calls = [c for step in steps if isinstance(step, KernelStep) for c in step.calls]
        found += [call.kernel for call in calls if call.kernel.tiles]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.architecture))
def test_tile_programs_compile(target: Target) -> None:
    found = tile_programs()
    assert len(found) == 4
    for kernel in found:
        code = compiler.compiled(kernel, target)
        assert code.binary.startswith(b"\x7fELF")
        assert code.name == compiler.tile_name(kernel)
        assert code.threads == 4 * target.warp
        assert 0 < code.shared <= 64 * 1024
        assert code.scratch == 2


def test_what_does_not_compile_is_told() -> None:
    kernel = replace(tile_programs()[0], body=("x = tl.nothing()",))
    with pytest.raises(gptrs.PtirError, match=r"Triton does not compile matmul_tile_program"):
        compiler.compiled(kernel, TARGETS[1])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
def test_results_in_the_interpreter() -> None:
    path = str(ROOT / "tests" / "backends" / "triton_interpreted.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", path)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
