"""Vector levels: detection on a CPU, and that LLVM uses no more than the level allows."""

from __future__ import annotations

import pytest

from gptrs import settings
from gptrs.errors import SettingError
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.cache_key import Code
from gptrs.kernels.compiler.compile import compile_ir
from tests.support.kernels import DOUBLE_IR

LEVELS = [level.name for level in isa.host_levels()]
X86 = isa.host()[0].startswith("x86_64")

pytestmark = pytest.mark.usefixtures("fresh_kernels")


def test_the_table_of_levels() -> None:
    for level in isa.ISAS.values():
        used = level.tile_rows * level.tile_vectors + level.tile_vectors + 1
        assert used <= level.registers, "accumulators, the right operand and one broadcast"
        assert level.lanes * 32 == level.vector_bits
    assert isa.ISAS["avx512"].tile_columns == 32
    skylake = dict.fromkeys(isa.ISAS["avx512"].needs, True)
    assert [x.name for x in isa.available("x86_64", skylake)] == ["avx512", "avx2", "generic"]
    knights_landing = {**skylake, "avx512bw": False}
    assert [x.name for x in isa.available("x86_64", knights_landing)] == ["avx2", "generic"]
    assert [x.name for x in isa.available("x86_64", {})] == ["generic"]
    assert [x.name for x in isa.available("aarch64", {})] == ["neon", "generic"]
    assert [x.name for x in isa.available("riscv64", {})] == ["generic"]


def test_a_level_that_this_cpu_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isa.current().name == LEVELS[0]
    monkeypatch.setenv("GPTRS_ISA", next(name for name in isa.ISAS if name not in LEVELS))
    with pytest.raises(SettingError, match=f"offers {LEVELS[0]}"):
        compile_ir(DOUBLE_IR, "double")
    monkeypatch.setenv("GPTRS_ISA", "sse9")
    with pytest.raises(SettingError, match="expected avx512, avx2, neon or generic"):
        settings.isa()


@pytest.mark.skipif(not X86, reason="names x86 CPUs")
def test_code_for_a_better_cpu_than_this() -> None:
    triple = isa.host()[0]
    code = Code("llvm", DOUBLE_IR, ("double",))
    best = isa.target_for(isa.ISAS["avx512"], triple, "sapphirerapids", {})
    assert "zmm" in code.assembly(best), "512 bits, although this CPU prefers 256"
    lower = code.assembly(isa.target_for(isa.ISAS["avx2"], triple, "sapphirerapids", {}))
    assert "ymm" in lower
    assert not any(name in lower for name in ("zmm", "ymm16", "%k1"))
    plain = code.assembly(isa.target_for(isa.ISAS["generic"], triple, "sapphirerapids", {}))
    assert "xmm" in plain
    assert not any(name in plain for name in ("ymm", "zmm", "vadd"))
