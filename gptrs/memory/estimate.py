"""Memory estimate of a model, from a trace and a plan without weights.

The model is built of parameters that have types only, its program is traced and planned at the
given sizes, and the report of the plan lists its weights (as stored, packed or derived), the arena
of intermediate values and the transient memory of loading. Nothing is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gptrs import tree
from gptrs.backends.base import PlanReport
from gptrs.byte_sizes import size_text
from gptrs.errors import ArgumentError
from gptrs.formats.overrides import read_overrides
from gptrs.html_tables import Markup, bar, fragment, table
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, bf16, f16, f32
from gptrs.jit.overrides import Policies, checkpoint_overrides
from gptrs.kernels.driver.threads import limit_threads, thread_count
from gptrs.large_pages import LARGE
from gptrs.lazy_dataclass import dataclass
from gptrs.memory.abstract_model import abstract_model, without_elements
from gptrs.nn.cache import CacheLayout, KVCache
from gptrs.nn.cache_memory import LEAST, MOST
from gptrs.text.configured_model import cache_of, layout_for
from gptrs.text.prefill import CHUNK, chunk_columns

RUNTIME_BYTES = 112_000_000
"""The process without weights, with cached kernels: Python, NumPy, LLVM and this package
(measured: 96 to 106 MB with Python 3.11 on Linux, plus a margin for CPUs with larger kernels;
compiling takes about 80 MB more)."""

_DTYPES = {"float32": f32, "float16": f16, "bfloat16": bf16}


@dataclass(frozen=True)
class MemoryEstimate:
    """The peak memory of a process with one model, in bytes.

    For a language model during the prefill of ``context`` tokens in each of ``batch`` rows, for an
    image classifier during the classification of ``batch`` images.
    """

    weights: int
    """Weights that kernels read as stored."""
    packed: int
    """Weights packed for kernels or derived from others; the originals are released."""
    kv_cache: int
    activations: int
    """Intermediate values, results, and images."""
    loading: int
    """Transient memory of packing and deriving weights on all threads, and unused rests of large
    pages."""
    runtime: int
    """The process without a model."""
    context: int | None
    batch: int
    threads: int

    @property
    def total(self) -> int:
        return sum(self.parts().values())

    def parts(self) -> dict[str, int]:
        """The bytes by purpose."""
        return {
            "weights": self.weights,
            "packed forms": self.packed,
            "KV cache": self.kv_cache,
            "activations": self.activations,
            "loading": self.loading,
            "runtime": self.runtime,
        }

    def __str__(self) -> str:
        rows = [*self.parts().items(), ("total", self.total)]
        return "\n".join(f"{name:12}  {size_text(size):>9}" for name, size in rows)

    def _repr_html_(self) -> str:
        """The bytes by purpose for notebooks, each with its share as a bar."""
        rows = [(*row, bar(row[1] / self.total)) for row in self.parts().items()]
        rows.append(("total", self.total, Markup()))
        sizes = [("context", self.context), ("batch", self.batch), ("threads", self.threads)]
        given = ", ".join(f"{name} {count}" for name, count in sizes if count is not None)
        lines = [(name, size_text(size), share) for name, size, share in rows]
        return fragment(table((given, "memory", ""), lines, numbers=(1,)))


class ModelMemory:
    """The memory of one model at different sizes; it is traced once."""

    def __init__(
        self, module: Any, policies: Policies = (), cache: CacheLayout | None = None
    ) -> None:
        self.module = module
        self.cache = cache or CacheLayout()
        if cache is None and self.longest is not None:
            self.cache = layout_for(module)
        self._policies = policies
        self._call = _class_of(module).__call__
        self._stored = sum(parameter.bytes for parameter in module.parameters().values())

    @classmethod
    def of_config(
        cls,
        config: Mapping[str, Any],
        runtime: Mapping[str, Any],
        file: Path,
        dtype: DType | None = None,
        kv_cache_dtype: object = None,
    ) -> ModelMemory:
        """The memory of a model given by its configuration. Raises `LoadError` naming ``file``."""
        said: object = config.get("dtype", config.get("torch_dtype"))
        said = _DTYPES.get(said, f32) if isinstance(said, str) else f32
        module = _retyped(abstract_model(config, file), dtype or said)
        made = cls(module, read_overrides(runtime, file))
        return made if kv_cache_dtype is None else made.caching(kv_cache_dtype)

    def converted(self, dtype: DType) -> ModelMemory:
        """The same model with weights of another dtype."""
        return ModelMemory(_retyped(self.module, dtype), self._policies, self.cache)

    def caching(self, kv_cache_dtype: object) -> ModelMemory:
        """The same model with keys and values of another dtype. Raises `ArgumentError`."""
        if self.longest is None:
            raise ArgumentError(
                f"kv_cache_dtype is {kv_cache_dtype!r}, and the model takes images",
                fix="leave it out",
            )
        return ModelMemory(self.module, self._policies, layout_for(self.module, kv_cache_dtype))

    @property
    def longest(self) -> int | None:
        """The context length of a language model; None for images."""
        return self.module.context_length if self.module.task == "causal_lm" else None

    def at(
        self, *, context: int | None = None, batch: int = 1, threads: int | None = None
    ) -> MemoryEstimate:
        """The memory at these sizes. Raises `ArgumentError`."""
        count = thread_count() if threads is None else threads
        for name, value in (("batch", batch), ("threads", count)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ArgumentError(f"{name} is {value!r}, expected an integer from 1 up")
        context = self._checked(context)
        with checkpoint_overrides(self._policies):
            if context is None:
                report, kv_cache, activations = self._images(batch, count)
            else:
                report, kv_cache, activations = self._text(context, batch, count)
        held = [(form.form == "as stored", form.bytes) for form in report.parameters]
        return MemoryEstimate(
            weights=sum(size for stored, size in held if stored) if held else self._stored,
            packed=sum(size for stored, size in held if not stored),
            kv_cache=kv_cache,
            activations=activations,
            loading=report.loading_bytes + _unused(kv_cache),
            runtime=RUNTIME_BYTES,
            context=context,
            batch=batch,
            threads=count,
        )

    def _checked(self, context: int | None) -> int | None:
        longest = self.longest
        if longest is None:
            if context is not None:
                raise ArgumentError(
                    f"context is {context!r}, and the model takes images", fix="leave it out"
                )
            return None
        if context is None:
            return longest
        if isinstance(context, bool) or not isinstance(context, int) or context < 1:
            raise ArgumentError(f"context is {context!r}, expected an integer from 1 up")
        if context > longest:
            raise ArgumentError(
                f"context is {context}, and the model holds {longest} tokens",
                fix=f"give at most {longest}",
            )
        return context

    def _text(self, context: int, batch: int, threads: int) -> tuple[PlanReport, int, int]:
        """The plan of a prefill of ``context`` tokens in chunks, the bytes of the KV cache, and
        those of activations."""
        cache, size = _cache(self.module, batch, context, self.cache)
        columns = chunk_columns(self.module, batch, context, CHUNK)
        tokens = _typed((batch, columns), np.dtype(np.int64))
        with limit_threads(threads):
            plan = self._call.explain(self.module, tokens, cache, logits="last").report
        return plan, size, plan.arena_bytes + plan.result_bytes

    def _images(self, batch: int, threads: int) -> tuple[PlanReport, int, int]:
        """As `_text`. Images run one by one, the first on all threads, others on one each."""
        size = self.module.image_size
        image = _typed((1, size, size, self.module.config.num_channels), np.dtype(np.float32))
        plans: list[PlanReport] = []
        for count in (threads, 1):
            with limit_threads(count):
                plans.append(self._call.explain(self.module, image).report)
        first, other = (plan.arena_bytes for plan in plans)
        at_once = min(batch, threads)
        arenas = max(first, other) + (at_once - 1) * other
        return plans[0], 0, arenas + batch * (image.nbytes + 2 * plans[0].result_bytes)


def _class_of(module: Any) -> Any:
    return module.__class__


def _retyped(module: Any, dtype: DType) -> Any:
    """``module`` with parameters of another dtype, without elements."""
    return _class_of(module).build(module.config, without_elements(dtype))


def _typed(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of this type that takes the memory of one element (stride 0)."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def _unused(kv_cache: int) -> int:
    """The unused rests of the last large pages of keys and of values."""
    return 2 * LARGE if LEAST <= kv_cache // 2 <= MOST else 0


def _cache(module: Any, batch: int, capacity: int, layout: CacheLayout) -> tuple[Any, int]:
    """A KV cache of stride 0 at any size, and its bytes.

    Its extents are extrapolated from caches of one and two rows and columns; those of layers with a
    window do not grow without end.
    """
    made: list[list[Any]] = []
    for rows, columns in ((1, 1), (2, 1), (1, 2)):
        cache = cache_of(module, np.zeros(rows, np.int32), columns, layout)
        leaves, structure = tree.flatten(cache, is_leaf=lambda x: isinstance(x, Tensor))
        made.append(leaves)
    most = capacity
    local: tuple[Tensor | None, ...] = ()
    if type(cache) is KVCache and cache.local is not None:
        local = cache.local_keys, cache.local_values
        most = min(capacity, int(cache.local.numpy()[2]))
    size, typed = 0, list[Any]()
    for one, wide, long in zip(*made, strict=True):
        if isinstance(one, Tensor):
            columns = most if any(long is each for each in local) else capacity
            shape = tuple(
                n + (w - n) * (batch - 1) + (c - n) * (columns - 1)
                for n, w, c in zip(one.shape, wide.shape, long.shape, strict=True)
            )
            array = _typed(shape, one.dtype.numpy)
            size += array.nbytes
            one = Tensor.of_array(array)
        typed.append(one)
    return tree.unflatten(structure, typed), size
