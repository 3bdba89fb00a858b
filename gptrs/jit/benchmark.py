"""Autotuning: the fastest implementation of a composite, timed once per use and cached.

Called by `gptrs.jit.chooser` for ``benchmark`` policies. Each candidate is lowered and planned as a
program of its own and runs on generated inputs; all candidates take turns within 50 ms. A use is
identified by its operands' types at the sizes of the call, its attributes, the texts of the
candidates, the backend, the CPU, the number of threads and the versions of what generates code.
Winners are cached in the process and, one small file each, beside the compiled kernels.
"""

from __future__ import annotations

import hashlib
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from statistics import median
from typing import Any, cast

import numpy as np

from gptrs import __version__, events, settings
from gptrs.backends.base import Backend
from gptrs.debug.benchmark import BenchmarkRan
from gptrs.errors import ElementError
from gptrs.ir.composites import Composite
from gptrs.ir.implementation import names_asked
from gptrs.ir.implementations.kernels import code_text, kernel_for
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import (
    VERSION,
    Instruction,
    Operation,
    Param,
    Program,
    Value,
    attrs_key,
    map_values,
    values_in,
)
from gptrs.ir.rewrite import Fuel
from gptrs.ir.sizes import filled
from gptrs.ir.types import Array, Type
from gptrs.jit.derived import run_of
from gptrs.kernels.compiler.object_cache import open_cache
from gptrs.kernels.driver.threads import thread_count
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import new_lock
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower

_BUDGET = 0.05  # seconds for the timed runs of all candidates together
_ROUNDS = 25
_WARM_UPS = 2  # the first compiles, packs weights and makes bindings

Choose = Callable[[Instruction], Program | None]


@dataclass(frozen=True)
class Bench:
    """The setting in which candidates are timed. ``key`` describes the other overrides, which
    ``choose`` applies inside a candidate."""

    backend: Backend
    sizes: Mapping[str, int]
    precise: bool
    key: str
    choose: Choose


_lock = new_lock()  # one measurement at a time. Reentrant: a candidate may contain another choice
_winners: dict[Operation, dict[str, str]] = {}  # by composite and key, least recently used first


def fastest(
    instruction: Instruction, candidates: Mapping[str, Program | None], bench: Bench, keep: int
) -> str:
    """The name of the candidate that runs ``instruction`` in the least time.

    A candidate is a program, or None for the instruction as it is. The winners of the ``keep`` uses
    of this composite that were asked for last stay in memory.
    """
    if len(candidates) == 1:
        return next(iter(candidates))
    alone = _alone(instruction)
    key = _key(alone, candidates, bench)
    with _lock:
        known = _winners.setdefault(instruction.op, {})
        name = known.pop(key, None) or _stored(key)
        if name is None or name not in candidates:
            name = _measured(alone, candidates, bench)
            if (store := open_cache()) is not None:
                store.store(key, name.encode(), f"gptrs {__version__}")
        known[key] = name
        while len(known) > keep:
            del known[next(iter(known))]
    return name


def _stored(key: str) -> str | None:
    """The winner in the cache on disk; None when there is none that can be read."""
    store = open_cache()
    data = None if store is None else store.load(key)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _key(alone: Program, candidates: Mapping[str, Program | None], bench: Bench) -> str:
    from gptrs.kernels.compiler import (  # load LLVM, which takes time and is seldom needed here
        codegen,
        isa,
    )

    (instruction,) = alone.body
    target = isa.target(isa.current())
    params = [(str(filled(p.type, bench.sizes)), p.role) for p in alone.params]
    literals = map_values(instruction.operands, lambda v: alone.params.index(cast("Param", v)))
    texts = [(name, str(program)) for name, program in candidates.items()]
    if (kernel := kernel_for(instruction)) is not None:
        texts.append(("kernel", code_text(kernel.function)))
    described = (
        *("benchmark", VERSION, __version__, sys.version, platform.machine(), np.__version__),
        *(codegen.version(), target.cpu, target.features, bench.backend.name, thread_count()),
        *(bench.precise, bench.key, instruction.op.name, params, literals),
        *(attrs_key(instruction.attrs), texts),
    )
    return hashlib.blake2b(repr(described).encode(), digest_size=20).hexdigest()


def _alone(instruction: Instruction) -> Program:
    """A program of this instruction only."""
    op = cast("Composite[..., Any]", instruction.op)
    params: dict[Value, Param] = {}
    for name, operand in zip(op.operand_names, instruction.operands, strict=True):
        for value in values_in((operand,)):
            if value not in params:
                role = value.role if isinstance(value, Param) else "input"
                taken = {param.name for param in params.values()}
                unique = name if name not in taken else f"{name}_{len(taken)}"
                params[value] = Param(value.type, unique, role=role)
    operands = map_values(instruction.operands, lambda v: params[v])
    results = tuple(Value(r.type, r.origin) for r in instruction.results)
    only = Instruction(op, operands, instruction.attrs, results, instruction.where)
    return Program(op.name, tuple(params.values()), (only,), results)


def _measured(alone: Program, candidates: Mapping[str, Program | None], bench: Bench) -> str:
    """The fastest candidate; the default one where none can run."""
    arguments = _arguments(alone, bench.sizes)
    runs: dict[str, Callable[[], object]] = {}
    with events.silence():
        for name, candidate in candidates.items():
            with suppress(ElementError):  # it rejects the generated inputs
                run = _ready(alone, candidate, bench, arguments)
                for _ in range(_WARM_UPS):
                    run()
                runs[name] = run
    seconds = _timed(runs)
    winner = min(seconds, key=lambda name: seconds[name], default=next(iter(candidates)))
    types = tuple(str(filled(param.type, bench.sizes)) for param in alone.params)
    events.emit(BenchmarkRan(alone.name, types, seconds, winner))
    return winner


def _ready(
    alone: Program, candidate: Program | None, bench: Bench, arguments: Sequence[Array | Parameter]
) -> Callable[[], object]:
    """A run of the plan of ``alone``, by this candidate."""

    def choose(instruction: Instruction) -> Program | None:
        if instruction.op is alone.body[0].op:
            return candidate
        return bench.choose(instruction)

    context = Context(bench.backend, Fuel(), bench.precise, choose=choose)
    program = lower(alone, context, check=settings.verify())
    run = run_of(program, bench.backend.plan(program, precise=bench.precise))
    return lambda: run(arguments, bench.sizes)


def _timed(runs: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The median time of each, in seconds. Runs are interleaved, so that disturbances hit all."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    end = time.perf_counter() + _BUDGET
    for _ in range(_ROUNDS):
        for name, run in runs.items():
            times[name].append(seconds_of(name, run))
        if time.perf_counter() > end:
            break
    return {name: median(found) for name, found in times.items()}


def seconds_of(name: str, run: Callable[[], object]) -> float:
    """How long one run of the candidate called ``name`` takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _arguments(alone: Program, sizes: Mapping[str, int]) -> list[Array | Parameter]:
    """Inputs that every candidate accepts; operands with the role of parameters are Parameters."""
    op = cast("Composite[..., Any]", alone.body[0].op)
    operands = map_values(alone.body[0].operands, lambda v: filled(v.type, sizes))
    given = op.named(operands, {})
    made: list[Array | Parameter] = []
    for param in alone.params:
        example = op.examples.get(param.name)
        whole = 0
        if example is not None:
            whole = example(**{name: given[name] for name in names_asked(example, given)})
        array = _numbers(filled(param.type, sizes), whole)
        made.append(Parameter(array, param.name) if param.role == "parameter" else array)
    return made


def _numbers(type: Type, whole: int) -> Array:
    """Floats between ¼ and 1, for which every function is finite; ``whole`` for integers."""
    shape = [int(n) for n in type.shape]
    if not (type.dtype.is_float or type.dtype.is_complex):
        return np.full(shape, True if type.dtype.is_bool else whole, type.dtype.numpy)
    some = np.random.default_rng(0).uniform(0.25, 1, 1021)
    return np.resize(some.astype(type.dtype.numpy), shape)
