"""Random calls: rng_uniform, rng_normal and random_bits, an element from the words of its block."""

from __future__ import annotations

from typing import cast

from gptrs.backends.faer.calls.base import Binder, Call
from gptrs.backends.faer.element_types import HALVES, POINTERS, loaded, stored
from gptrs.backends.faer.render import as_word
from gptrs.backends.memory_operands import Graph
from gptrs.ir.ops.random import ends, random_bits, rng_normal
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import DType, f64, ui64
from gptrs.kernels.compiler import isa as levels
from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.philox import Distribution, elements_of_group, source
from gptrs.lazy_dataclass import dataclass

_TIME_NS: dict[Distribution, float] = {"uniform": 1.0, "normal": 15.0, "bits": 1.0}  # an element


@dataclass(frozen=True, eq=False)
class Random(Call):
    """rng_uniform and rng_normal of any float dtype, random_bits of any unsigned one."""

    target = "gpt_rs.faer.random.v1"

    seed: Value
    start: Value | None
    distribution: Distribution
    numbers: tuple[float, ...]

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Random | None:
        dtype = cast("DType", core.attrs["dtype"])
        if dtype.name in HALVES and not levels.current().half:
            return None
        seed, start = cast("tuple[Value, Value | None]", (*core.operands, None)[:2])
        return cls(core.result, (core,), seed, start, *_drawn(core))

    @property
    def _wide(self) -> bool:
        """Whether an element takes two words."""
        return self.result.type.dtype in (f64, ui64)

    @property
    def _kernel(self) -> Kernel:
        dtype, seed = self.result.type.dtype, self.seed.type.dtype
        starts = self.start is not None
        name = f"rng_{self.distribution}_{dtype.name}_{seed.name}" + "_from" * starts
        read = POINTERS[seed.name], loaded(seed, "seed[which]")
        written = POINTERS[dtype.name], stored(dtype, "x")
        text = source(
            name, self.distribution, read, written, wide=self._wide, bits=dtype.bits, starts=starts
        )
        return compile_source(text, name)

    def compile(self, isa: Isa) -> None:
        self._kernel  # noqa: B018

    def bind(self, b: Binder) -> bool:
        seeds, total = b.size(self.seed.type.size), b.size(self.result.type.size)
        if not total:
            return True
        count = total // seeds
        groups = -(-count // elements_of_group(wide=self._wide))
        words = [b.address(self.seed), b.address(self.result), count, groups]
        words += [b.size(as_word(number)) for number in self.numbers]
        if self.distribution == "bits":
            words += [self.members[0].attrs["stream"]]
            words += [b.address(self.start)] if self.start is not None else []
        time = total * _TIME_NS[self.distribution]
        b.step(self._kernel, words, seeds * groups, time)
        return True


def _drawn(core: Instruction) -> tuple[Distribution, tuple[float, ...]]:
    """What is drawn, and its numbers (`gptrs.kernels.philox.NUMBERS`)."""
    attrs = core.attrs
    if core.op is random_bits:
        return "bits", ()
    if core.op is rng_normal:
        return "normal", (float(attrs["mean"]), float(attrs["std"]))
    low, high = float(attrs["low"]), float(attrs["high"])
    return "uniform", (low, high - low, *ends(low, high, attrs["dtype"]))
