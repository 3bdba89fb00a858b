"""Random calls: rng_uniform and rng_normal, each element from the words of its own block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from gptrs.backends.faer.calls.base import Binder, Call
from gptrs.backends.faer.element_types import HALVES, POINTERS, loaded, stored
from gptrs.backends.faer.graph import Graph
from gptrs.backends.faer.render import as_word
from gptrs.ir.ops.random import ends, rng_uniform
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import DType, f64
from gptrs.kernels.compiler import isa as levels
from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.philox import NUMBERS, Distribution, elements_of_group, source

_TIME_NS: dict[Distribution, float] = {"uniform": 1.0, "normal": 15.0}  # of an element


@dataclass(frozen=True, eq=False)
class Random(Call):
    """rng_uniform and rng_normal, of any float dtype."""

    target = "gpt_rs.faer.random.v1"

    seed: Value
    distribution: Distribution
    numbers: tuple[float, ...]

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Random | None:
        (seed,) = core.values()
        attrs, dtype = core.attrs, cast("DType", core.attrs["dtype"])
        if dtype.name in HALVES and not levels.current().half:
            return None
        if core.op is rng_uniform:
            low, high = attrs["low"], attrs["high"]
            numbers = (low, high - low, *ends(low, high, dtype))
            return cls(core.result, (core,), seed, "uniform", tuple(map(float, numbers)))
        numbers = attrs["mean"], attrs["std"]
        return cls(core.result, (core,), seed, "normal", tuple(map(float, numbers)))

    @property
    def _kernel(self) -> Kernel:
        dtype, seed = self.result.type.dtype, self.seed.type.dtype
        name = f"rng_{self.distribution}_{dtype.name}_{seed.name}"
        read = POINTERS[seed.name], loaded(seed, "seed[0]")
        written = POINTERS[dtype.name], stored(dtype, "x")
        return compile_source(
            source(name, self.distribution, read, written, wide=dtype is f64), name
        )

    def compile(self, isa: Isa) -> None:
        self._kernel  # noqa: B018

    def bind(self, b: Binder) -> bool:
        count = b.size(self.result.type.size)
        each = elements_of_group(wide=self.result.type.dtype is f64)
        assert len(self.numbers) == len(NUMBERS[self.distribution])
        numbers = [b.size(as_word(number)) for number in self.numbers]
        words = [b.address(self.seed), b.address(self.result), count, *numbers]
        time = count * _TIME_NS[self.distribution]
        b.step(self._kernel, words, -(-count // each), time)
        return True
