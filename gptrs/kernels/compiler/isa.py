"""Vector instruction levels (`Isa`): register sizes, tile sizes of the product, and LLVM targets.

One row of a table per level: AVX-512, AVX2, NEON, generic (128 bits, no fused multiply-add). A
level decides the code of all generators and, by `target_for`, the CPU and features that LLVM
compiles for. `current` chooses the best level that this CPU offers, or ``GPTRS_ISA``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache

import llvmlite.binding as llvm  # pyright: ignore[reportMissingTypeStubs]

from gptrs import settings
from gptrs.errors import SettingError
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Isa:
    """One level of vector instructions, and the tile that the matrix product uses on it.

    A tile is ``tile_rows`` x ``tile_vectors`` accumulators; with the ``tile_vectors`` loaded from
    the right operand and one broadcast value they fit into ``registers``.
    """

    name: str
    vector_bits: int
    registers: int
    tile_rows: int
    tile_vectors: int
    panel_bytes: int
    """Bytes of a panel of B in a cache block of the product: as many as fit into L1; where L2 feeds
    the multiply-adds as fast, more, as C is then read and written less often."""
    fma: bool
    """Whether a multiply-add is one instruction (without it, LLVM's ``fma`` is a slow call)."""
    architectures: tuple[str, ...]
    """First parts of the target triple; none stands for every one."""
    lookup: str
    """LLVM's name for the instruction that looks bytes up in tables of 16; empty if it has none."""
    needs: tuple[str, ...] = ()
    """CPU features, in LLVM's names."""

    @property
    def half(self) -> bool:
        """Whether f16 is converted by instructions: the levels that multiply and add in one have
        those too."""
        return self.fma

    @property
    def quicksort_bits(self) -> int:
        """The width of the vectors that quicksort divides, where an instruction moves chosen lanes
        together or lanes to any places; 0 without one."""
        return self.vector_bits if self.vector_bits >= 256 else 0

    @property
    def prefetches_streams(self) -> bool:
        """Whether panels that are read side by side are prefetched in software. CPUs whose widest
        vectors have 256 bits start late at the next page of a stream (Zen 3: 11 % of a decode of
        bf16); those with wider ones are 5 to 36 % slower with it (Zen 4)."""
        return self.vector_bits == 256

    @property
    def lanes(self) -> int:
        """How many f32 a vector register holds."""
        return self.vector_bits // 32

    @property
    def tile_columns(self) -> int:
        """How many columns of the result a tile covers: the width of a packed panel."""
        return self.tile_vectors * self.lanes


KB = 1024

_X86 = ("x86_64",)
_ARM = ("aarch64", "arm64", "arm64e")
_AVX2 = ("avx2", "fma", "f16c")
_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl")
_LOOKUP = {512: "x86.avx512.pshuf.b.512", 256: "x86.avx2.pshuf.b", 128: "aarch64.neon.tbl1.v16i8"}

# Best first. An Isa that the CPU offers stands before all lower ones of its architecture.
ISAS: dict[str, Isa] = {
    row.name: row
    for row in (
        Isa("avx512", 512, 32, 14, 2, 128 * KB, True, _X86, _LOOKUP[512], (*_AVX2, *_AVX512)),
        Isa("avx2", 256, 16, 6, 2, 64 * KB, True, _X86, _LOOKUP[256], _AVX2),
        Isa("neon", 128, 32, 6, 4, 32 * KB, True, _ARM, _LOOKUP[128]),  # of every 64-bit Arm CPU
        Isa("generic", 128, 16, 4, 2, 32 * KB, False, (), ""),
    )
}

# Features beyond AVX2, by the beginning of their names.
_BEYOND_AVX2 = ("avx512", "avx10", "amx-", "evex512")
# The CPU that LLVM assumes for the generic level, where it is known.
_BASELINE = {"x86_64": "x86-64", "aarch64": "generic", "arm64": "generic", "arm64e": "generic"}


@dataclass(frozen=True)
class Target:
    """An LLVM target: triple, CPU and features (``+name,-name``)."""

    isa: Isa
    triple: str
    cpu: str
    features: str


def available(architecture: str, features: Mapping[str, bool]) -> tuple[Isa, ...]:
    """The levels that a CPU with ``features`` can run, best first."""
    return tuple(
        row
        for row in ISAS.values()
        if (not row.architectures or architecture in row.architectures)
        and all(features.get(need, False) for need in row.needs)
    )


def target_for(isa: Isa, triple: str, cpu: str, features: Mapping[str, bool]) -> Target:
    """The LLVM target for the level ``isa`` on a CPU that may offer more."""
    architecture = triple.split("-", 1)[0]
    if isa.name == "generic" and architecture in _BASELINE:
        return Target(isa, triple, _BASELINE[architecture], "")
    flags = dict(features)
    if isa.name == "avx2":
        # Also features that the list lacks but the CPU's name implies.
        flags.update(dict.fromkeys(_AVX512, False))
        flags = {n: on and not n.startswith(_BEYOND_AVX2) for n, on in flags.items()}
    if isa.name == "avx512":
        # LLVM stays at 256 bits on CPUs that lower their clock for 512; few of today's do.
        flags["prefer-256-bit"] = False
        # LLVM does not know that gathers take longer than loads one by one on Zen 4.
        flags["prefer-no-gather"] = cpu.startswith("znver")
    text = ",".join(("+" if on else "-") + name for name, on in sorted(flags.items()))
    return Target(isa, triple, cpu, text)


@cache
def host() -> tuple[str, str, Mapping[str, bool]]:
    """The target triple, name and features of the CPU that runs this process."""
    features: dict[str, bool] = {}
    with suppress(RuntimeError):  # LLVM cannot tell on some systems
        features.update(llvm.get_host_cpu_features())  # pyright: ignore[reportUnknownArgumentType]
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


@cache
def host_levels() -> tuple[Isa, ...]:
    """The levels that this CPU can run, best first."""
    triple, _, features = host()
    return available(triple.split("-", 1)[0], features)


def current() -> Isa:
    """The level that kernels are compiled for: ``GPTRS_ISA``, or the best that this CPU offers.

    Raises `SettingError` when the CPU does not offer that level.
    """
    levels = host_levels()
    name = settings.isa()
    if not name:
        return levels[0]
    for level in levels:
        if level.name == name:
            return level
    raise SettingError(
        f"GPTRS_ISA={name!r}: this CPU ({host()[1]}) offers {', '.join(x.name for x in levels)}",
        fix="unset GPTRS_ISA or name one of those",
    )


@cache
def target(isa: Isa) -> Target:
    """How kernels for ``isa`` are compiled on this machine."""
    return target_for(isa, *host())
