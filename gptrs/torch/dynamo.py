"""``torch.compile(model, backend="gptrs")``: graphs of torch as programs.

torch hands over a graph with its operands; aot_autograd makes it functional, splits off the
backward pass where there is one, and decomposes what the table of operators lacks. The rest is
traced like any function. Where sizes are symbolic, one program serves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from torch import _decomp
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule

from gptrs.torch.aten import TABLE
from gptrs.torch.compiled import CompiledGraph
from gptrs.torch.composites import keep_composites
from gptrs.torch.options import GraphOptions


def gptrs(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """The backend ``gptrs`` of ``torch.compile``. Modes make no difference: there is one.

    ``options`` are those of `gptrs.torch.options.GraphOptions`.
    """
    compiler = partial(_compiled, options=GraphOptions.of(options))
    backend: Any = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=partial(compiler, is_inference=True),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    with keep_composites(example_inputs):
        return backend(module, example_inputs)


def decompositions() -> dict[Any, Any]:
    """How torch writes operators that the table lacks in simpler ones.

    Composites are not among them: torch takes those apart by itself where none keeps them.
    """
    decomp: Any = _decomp
    core = decomp._core_aten_decompositions_post_autograd()
    return {
        target: core[target] for target in core if str(target).removeprefix("aten.") not in TABLE
    }


def _compiled(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: GraphOptions,
    is_inference: bool = False,
) -> Callable[..., Any]:
    return CompiledGraph(module, options, is_inference=is_inference).boxed()
