"""torch's own samples of its operators, through aot_autograd and the table.

    python -m tests.torch.opinfo                    # all operators, all samples, f32
    python -m tests.torch.opinfo --dtype int64 --backward add mul

Prints a line for each operator that is wrong or that torch runs, and the counts.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._functorch.aot_autograd import aot_function
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)
from torch.testing import assert_close
from torch.testing._internal import common_methods_invocations
from torch.utils import _pytree as pytree

from gptrs.torch.compiled import CompiledGraph
from gptrs.torch.dynamo import decompositions
from gptrs.torch.operators import Fallback
from gptrs.torch.options import GraphOptions

OPERATORS: list[Any] = common_methods_invocations.op_db  # pyright: ignore[reportUnknownMemberType]
UNDEFINED = frozenset(
    ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
)
"""Operators whose elements are not defined."""
UP_TO_SIGNS = frozenset(("linalg.eig", "linalg.eigh", "linalg.svd", "svd", "svd_lowrank"))
"""Operators whose vectors may have another sign or phase: torch says what of them is defined."""

UP_TO_TIES = {"argsort": 0, "kthvalue": 1, "mode": 0, "sort": 0, "topk": 1}
"""Operators whose positions of equal elements torch leaves open, unless they are to be stable, and
the place of the axis in their arguments."""


@dataclass(frozen=True)
class Report:
    """What came of an operator or a module: its samples, the first error, what torch ran."""

    name: str
    samples: int
    error: str
    fallbacks: tuple[Fallback, ...]


def name_of(operator: Any) -> str:
    """The operator's name, with its variant."""
    variant = operator.variant_test_name
    return f"{operator.name}.{variant}" if variant else operator.name


def check(
    operator: Any, dtype: torch.dtype, most: int | None = None, *, backward: bool = False
) -> Report:
    """Hold ``operator`` against torch, with at most so many of its samples."""
    samples: Iterator[Any] = operator.sample_inputs("cpu", dtype, requires_grad=backward)
    _run_by_torch.clear()
    count = 0
    for count, sample in enumerate(itertools.islice(samples, most), 1):
        try:
            check_sample(operator, sample, backward=backward)
        except (DynamicOutputShapeException, DataDependentOutputException) as error:
            return Report(name_of(operator), count, "", (Fallback("all", _first_line(error)),))
        except Exception as error:  # of any kind, and of torch's: reported
            return Report(name_of(operator), count, _first_line(error), tuple(_run_by_torch))
    return Report(name_of(operator), count, "", tuple(_run_by_torch))


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    wrong = [line for line in lines if "difference" in line][:1]
    return " ".join([type(error).__name__, *lines[:1], *wrong])[:300]


def check_sample(operator: Any, sample: Any, *, backward: bool = False) -> None:
    """Hold one sample against torch. Raises what differs."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors: torch.Tensor) -> list[Any]:
        given = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        operand, args, kwargs = pytree.tree_unflatten(given, spec)
        results = operator(operand, *args, **kwargs)
        if operator.name in UP_TO_SIGNS:
            results = sample.output_process_fn_grad(results)
        results, _ = pytree.tree_flatten(results)
        if operator.name in UP_TO_TIES and not kwargs.get("stable"):
            axis = dict(enumerate(args)).get(UP_TO_TIES[operator.name], -1)
            results[-1] = _elements(operand, results[-1], kwargs.get("dim", axis))
        # As copies: torch makes results that are views itself.
        return [r.clone() for r in results if isinstance(r, torch.Tensor)]

    is_random = False

    def compiler(module: Any, examples: Sequence[Any]) -> Any:
        nonlocal is_random
        is_random = is_random or any(map(_is_random, module.graph.nodes))
        return run_by_table(module)

    run: Any = aot_function
    compiled = run(function, compiler, decompositions=decompositions())
    copies = [[_copy(leaves[place]) for place in places] for _ in range(3)]
    with torch.set_grad_enabled(backward):
        torch.manual_seed(0)
        wanted = function(*copies[0])
        torch.manual_seed(0)
        made = compiled(*copies[1])
    assert [r.shape for r in made] == [r.shape for r in wanted]
    if is_random or operator.name in UNDEFINED:
        return
    # An ill-conditioned result may be as wrong as torch's own is.
    is_wide = any(leaves[place].dtype is torch.float64 for place in places)
    exact, after = (wanted, copies[0]) if is_wide else _exact(function, copies[2])
    compare_all(made, wanted, exact, 1e-4)
    compare_all(copies[1], copies[0], after, 1e-4)
    if backward:
        gradients = _gradients(wanted, copies[0])
        compare_all(_gradients(made, copies[1]), gradients, gradients, 1e-3)


def _elements(x: torch.Tensor, positions: torch.Tensor, axis: int) -> torch.Tensor:
    """What lies at these positions along an axis, which may have been dropped."""
    if positions.ndim < x.ndim:
        positions = positions.unsqueeze(axis)
    return torch.gather(x, axis, positions)


def compare_all(
    made: Sequence[torch.Tensor],
    wanted: Sequence[torch.Tensor],
    exact: Sequence[torch.Tensor],
    absolute: float,
) -> None:
    """Compare results with torch's, or with its results in f64. Raises `AssertionError`."""
    for each, other, precise in zip(made, wanted, exact, strict=True):
        relative = operator_tolerance(other.dtype)
        if not other.dtype.is_floating_point or precise.dtype is not torch.float64:
            assert_close(each, other, rtol=relative, atol=absolute, equal_nan=True)
            continue
        error = (
            (other.detach().to(precise.dtype) - precise).abs().nan_to_num(nan=0, posinf=0, neginf=0)
        )
        slack = 3 * float(error.max()) if error.numel() else 0
        assert_close(each, other, rtol=relative, atol=max(absolute, slack), equal_nan=True)


def _exact(
    function: Callable[..., Any], operands: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The results of torch in f64, and the operands after it; for an operator without f64, in the
    operands' dtype."""
    wide = [x.detach().double() if x.is_floating_point() else x.detach() for x in operands]
    try:
        return [r.detach() for r in function(*wide)], wide
    except RuntimeError:
        given = [x.detach() for x in operands]
        return [r.detach() for r in function(*given)], given


def run_by_table(module: Any) -> Any:
    """A graph as the table computes it, in the calling convention of aot_autograd."""
    graph = CompiledGraph(module, GraphOptions(), is_inference=False)

    def call(operands: list[Any]) -> list[Any]:
        given = list(operands)
        operands.clear()
        made = graph(given)
        _run_by_torch.update(dict.fromkeys(graph.fallbacks))
        return made

    call._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return call


_run_by_torch: dict[Fallback, None] = {}


def _is_random(node: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def operator_tolerance(dtype: torch.dtype) -> float:
    """The relative error that is allowed."""
    return {torch.bfloat16: 1.6e-2, torch.float16: 2e-3, torch.float64: 1e-7}.get(dtype, 2e-5)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy; that of a part of some memory is the same part of a copy of that memory."""
    made, memory = tensor.detach(), tensor.untyped_storage()
    if made.is_contiguous() and memory.nbytes() > made.numel() * made.element_size():
        whole = torch.empty(0, dtype=made.dtype).set_(memory.clone())
        made = whole.as_strided(made.shape, made.stride(), made.storage_offset())
    else:
        made = made.clone()
    return made.requires_grad_(tensor.requires_grad)


def _gradients(results: Sequence[torch.Tensor], operands: Sequence[torch.Tensor]) -> list[Any]:
    wanted = [x for x in operands if x.requires_grad]
    kept = [r for r in results if r.requires_grad]
    if not wanted or not kept:
        return []
    total: Any = sum(r.abs().sum() if r.is_complex() else r.sum() for r in kept)
    return [g for g in torch.autograd.grad(total, wanted, allow_unused=True) if g is not None]


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--backward", action="store_true")
    given = parser.parse_args(arguments)
    dtype = getattr(torch, given.dtype)
    return tell(_reports(given, dtype))


def _reports(given: argparse.Namespace, dtype: torch.dtype) -> Iterator[Report]:
    for operator in OPERATORS:
        supported = operator.supported_backward_dtypes("cpu") if given.backward else operator.dtypes
        if dtype not in supported or (given.names and operator.name not in given.names):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield check(operator, dtype, given.samples, backward=given.backward)


def tell(reports: Iterable[Report]) -> int:
    """Print a line for each that is wrong or that torch runs, and the counts; the exit code."""
    counts: Counter[str] = Counter()
    for report in reports:
        kind = "wrong" if report.error else "torch" if report.fallbacks else "right"
        counts[kind] += 1
        if kind != "right":
            run = "; ".join(f"{f.operator} ({f.reason})" for f in report.fallbacks)
            print(f"{report.name}: {report.error or run}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
