"""`TorchPlan`: a program as one Python function over torch ops, and its calls."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import torch

from gptrs import settings
from gptrs.backends.base import Plan, PlanReport
from gptrs.backends.reference import ReferencePlan
from gptrs.backends.torch.device_array import TorchArray
from gptrs.backends.torch.graphs import Graphs
from gptrs.backends.torch.lifetimes import Lifetimes
from gptrs.backends.torch.precision import f32_products
from gptrs.backends.torch.run import CheckFailed, HostStep, Run
from gptrs.backends.torch.source import emit
from gptrs.backends.torch.transfer import to_device, to_host
from gptrs.backends.torch.weights import Weights
from gptrs.ir import effect_tape
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.operands import map_operand
from gptrs.ir.ops.control import cond, while_loop
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.sizes import apply, failing_at_sizes, fails_at, filled
from gptrs.ir.types import Array
from gptrs.locks import new_lock

Argument: TypeAlias = Array | Parameter | DeviceArray
Function: TypeAlias = Callable[..., tuple[torch.Tensor, ...]]


class TorchPlan(Plan):
    """Runs the emitted function of a program on one device. ``print(plan)`` shows it."""

    def __init__(self, program: Program, device: torch.device, backend: str) -> None:
        self.program, self.device = program, backend
        self._on = device
        emitted = emit(program, on_cpu=device.type == "cpu")
        self.source, self._steps, self._name = emitted.source, emitted.steps, emitted.name
        self._constants = emitted.constants
        self._host: list[HostStep] = [partial(_by_meaning, i) for i in emitted.host]
        self._uploaded: list[torch.Tensor] | None = None
        self._lock = new_lock()
        lifetimes = Lifetimes(program)
        self._own = [lifetimes.is_own(result) for result in program.results]
        self._unread = lifetimes.unread()
        self._acts = any(i.has_effects for i in program.body)
        self._at_sizes = failing_at_sizes(program)
        self._fits: dict[tuple[int, ...], bool] = {}
        self._weights = Weights(device)
        self._function = self._compiled()
        self._graphs = self._graphs_of() if _can_be_captured(program, self._host) else None

    def __str__(self) -> str:
        return self.source

    def _compiled(self) -> Function:
        scope: dict[str, Any] = {}
        exec(compile(self.source, f"<{self._name}, as torch runs it>", "exec"), scope)
        found: Function = scope[self._name]
        compiler = settings.torch_compile()
        return torch.compile(found, backend=compiler) if compiler else found

    def _graphs_of(self) -> Graphs | None:
        if self._on.type != "cuda" or not settings.torch_graphs():
            return None
        stays = [p.donated or p.role == "parameter" for p in self.program.params]
        return Graphs(self._function, stays)

    def run(self, arguments: Sequence[Argument], sizes: Mapping[str, int]) -> tuple[Array, ...]:
        return tuple([array.numpy() for array in self.run_on_device(arguments, sizes)])

    def run_on_device(
        self, arguments: Sequence[Argument], sizes: Mapping[str, int]
    ) -> tuple[TorchArray, ...]:
        """`run`, with results that stay on the device; arguments may be there, too."""
        if self._at_sizes and not self._fit(sizes):
            return self._refer(arguments, sizes)
        parameters = [a for a in arguments if isinstance(a, Parameter)]
        lease, loaded = self._weights.take(parameters)
        tape = effect_tape.Tape() if self._acts and not effect_tape.is_replaying() else None
        try:
            tensors = self._tensors(arguments, loaded)
            run = Run(self._on, sizes, self._constants_there(), self._host)
            noting = nullcontext() if tape is None else effect_tape.recorded(tape)
            with noting, f32_products(self._on):
                if self._graphs is None:
                    results = self._function(run, *tensors)
                else:
                    results = self._graphs.run(run, tensors)
                run.settle()
        except CheckFailed:
            with nullcontext() if tape is None else effect_tape.replayed(tape):
                return self._refer(arguments, sizes)
        finally:
            self._weights.give_back(lease, loaded)
            for noted in tape.results if tape is not None else ():
                effect_tape.note(noted)  # for a recording around this call
        return self._owned(results, sizes)

    def report(self, sizes: Mapping[str, int]) -> PlanReport:
        return PlanReport(self.program.name, tuple(self._steps), scheduled=self.program)

    def load(self, arguments: Sequence[Any], sizes: Mapping[str, int]) -> None:
        self._weights.give_back(
            *self._weights.take([a for a in arguments if isinstance(a, Parameter)])
        )

    def _tensors(
        self, arguments: Sequence[Argument], loaded: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """The arguments on the device; None for those that nobody reads."""
        weights = iter(loaded)
        found: list[torch.Tensor | None] = []
        for param, argument in zip(self.program.params, arguments, strict=True):
            if isinstance(argument, Parameter):
                found.append(next(weights))
            elif param in self._unread:
                found.append(None)
            elif isinstance(argument, TorchArray) and argument.device == self.device:
                found.append(argument.tensor)
            else:
                array = argument if isinstance(argument, np.ndarray) else argument.numpy()
                found.append(to_device(array, self._on))
        return found

    def _constants_there(self) -> list[torch.Tensor]:
        """The constants of the program on the device."""
        if self._uploaded is None:
            with self._lock:
                if self._uploaded is None:
                    # In memory of their own: those of a program are shared by other plans.
                    arrays = [np.array(constant, order="C") for constant in self._constants]
                    self._uploaded = [to_device(array, self._on) for array in arrays]
        return self._uploaded

    def _fit(self, sizes: Mapping[str, int]) -> bool:
        """Whether no instruction fails at these sizes, whatever the elements are."""
        key = tuple(sizes.values())
        if (fit := self._fits.get(key)) is None:
            fit = not any(fails_at(instruction, sizes) for instruction in self._at_sizes)
            self._fits[key] = fit
        return fit

    def _owned(
        self, results: Sequence[torch.Tensor], sizes: Mapping[str, int]
    ) -> tuple[TorchArray, ...]:
        """Results in memory of their own, in row-major order."""
        made: list[TorchArray] = []
        for own, tensor, value in zip(self._own, results, self.program.results, strict=True):
            tensor = (
                tensor.contiguous() if own else tensor.clone(memory_format=torch.contiguous_format)
            )
            type = filled(value.type, sizes) if sizes else value.type
            made.append(TorchArray(tensor, type, self.device))
        return tuple(made)

    def _refer(
        self, arguments: Sequence[Argument], sizes: Mapping[str, int]
    ) -> tuple[TorchArray, ...]:
        """The call by the reference meaning, which raises the error of an element without a result
        in the user's words."""
        arrays = [a.numpy() if isinstance(a, DeviceArray) else a for a in arguments]
        found = ReferencePlan(self.program).run(arrays, sizes)
        pairs = zip(found, self.program.results, strict=True)
        return tuple(
            [
                TorchArray(to_device(array, self._on), filled(value.type, sizes), self.device)
                for array, value in pairs
            ]
        )


def _can_be_captured(program: Program, host: Sequence[HostStep]) -> bool:
    """Whether no step of a call waits for the device: none runs on the host, or decides what
    runs."""
    waits = any(i.op is cond or i.op is while_loop for i in _instructions(program))
    return not host and not waits


def _instructions(program: Program) -> Iterator[Instruction]:
    for instruction in program.body:
        yield instruction
        for region in instruction.regions():
            yield from _instructions(region)


def _by_meaning(
    instruction: Instruction, run: Run, operands: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, ...]:
    """An instruction by its op's NumPy meaning, on the host."""
    values = instruction.values()
    arrays = [to_host(tensor, value.type) for tensor, value in zip(operands, values, strict=True)]
    given = iter(arrays)
    filled_in = map_operand(
        lambda o: next(given) if isinstance(o, Value) else filled(o, run.sizes),
        instruction.operands,
    )
    attrs = {name: filled(value, run.sizes) for name, value in instruction.attrs.items()}
    found = apply(instruction, cast("tuple[Any, ...]", filled_in), attrs)
    return tuple([to_device(_owned(array, arrays), run.device) for array in found])


def _owned(array: Array, operands: Sequence[Array]) -> Array:
    """``array`` in memory of its own."""
    shared = array.base is not None or any(array is operand for operand in operands)
    return np.array(array, order="C") if shared else array
