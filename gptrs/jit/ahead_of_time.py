"""Ahead-of-time use of a jitted function: ``f.lower(...)`` traces, ``.compile()`` plans.

A `Compiled` runs one program. It reads what the function captured as it was then, and neither
compares Python state nor traces. `gptrs.formats.compiled_file` writes it to a file and reads it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gptrs import settings
from gptrs.backends.base import HOST, Backend
from gptrs.backends.selection import selected
from gptrs.debug.explain import Explanation
from gptrs.errors import PtirError, user_location, user_traceback
from gptrs.ir.device_array import on_host
from gptrs.ir.dims import size_at
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Program
from gptrs.ir.types import Array, Type
from gptrs.jit.arguments import Input, bind, collect
from gptrs.jit.call_form import CallForm, form_of, stand_ins, with_symbols
from gptrs.jit.captures import Captures
from gptrs.jit.derived import load
from gptrs.jit.lower import planned, record
from gptrs.jit.modes import backend_name
from gptrs.jit.numerics.traced_call import TracedCall
from gptrs.jit.numerics.watch import Watch, is_watched
from gptrs.jit.options import Options
from gptrs.jit.overrides import NONE, Overrides
from gptrs.jit.trace import Entry, Traced
from gptrs.kernels.compiler.loaded_object import noted, objects_of
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import late_import

if TYPE_CHECKING:
    import os


class Memory(NamedTuple):
    """Bytes that a call takes, beside the code."""

    arguments: int
    results: int
    temporaries: int
    """The arena of intermediate values."""
    parameters: int
    """Captured parameters, as they are stored."""
    packed: int
    """The forms of parameters that kernels read."""


@dataclass(frozen=True)
class Lowered:
    """A traced function, not compiled yet."""

    program: Program
    """As it was traced."""
    form: CallForm
    _traced: Traced
    _options: Options
    _overrides: Overrides
    _backend: Backend

    def as_text(self) -> str:
        """The program as Python text, which `ptir.parse` reads."""
        return str(self.program)

    def compile(self) -> Compiled:
        """The program after all passes, planned, with its kernels compiled."""
        given = self._traced, self.form.sizes, self._backend, self._options, self._overrides
        entry = planned(*given)
        return Compiled(self.form, entry, self._options, self._overrides, self._backend)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What the function captured, as the program takes it after its arguments."""
        return parameters_of(self._traced)

    def write_c(self, directory: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the program as C, with its weights, to be compiled and run without Python.

        A header, a source file, the weights and a Makefile (`gptrs.formats.c_files`). Raises
        `ArgumentError` naming the ops that have no C form and the lines that use them, and where
        ``directory`` exists, unless ``force`` is given.
        """
        files: Any = late_import("gptrs.formats.c_files")  # the layer above
        made = files.program_in_c(self.form.name, self.program)
        files.write_c(Path(directory), made, self.parameters, force=force)

    def __repr__(self) -> str:
        return f"<Lowered {self.form.name} of {_types(self.form)}>"


class Compiled:
    """A compiled program: call it like the function, with arguments of the types that it was
    lowered for."""

    def __init__(
        self,
        form: CallForm,
        entry: Entry,
        options: Options,
        overrides: Overrides,
        backend: Backend,
    ) -> None:
        self.form, self.entry = form, entry
        self.options, self.overrides, self.backend = options, overrides, backend
        self._parameters = parameters_of(entry.traced)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results. Raises `ArgumentError`, `ShapeError` or `DTypeError` for arguments of other
        types than those of `program`."""
        try:
            return self._run(args, kwargs)
        except PtirError as error:
            error.where = error.where or user_location()
            raise user_traceback(error, full=settings.full_traceback()) from None

    def _run(self, args: Any, kwargs: Any) -> Any:
        inputs, sizes = self.form.inputs(args, kwargs)
        host = self.entry.plan.device == HOST
        arrays = [x.tensor.numpy() if host else x.tensor.held() for x in inputs]
        given: Any = (*arrays, *self._parameters)
        watch = Watch(self._call_of(inputs, sizes)) if is_watched() else None
        run = self.entry.run if watch is None else partial(watch.run, self.entry.run)
        arrays = run(given, sizes)
        for leaf in inputs:
            if leaf.donated:
                leaf.tensor.donate(f"{self.form.name} (argument {leaf.path})")
        if watch is not None:
            watch.judge([on_host(array) for array in arrays])
        return self.form.result(arrays, sizes)

    def _call_of(self, inputs: Sequence[Input], sizes: Mapping[str, int]) -> TracedCall:
        given = (*(x.tensor.numpy() for x in inputs), *self._parameters)
        setup = self.backend, self.options, self.overrides
        return TracedCall(self.form.name, self.program, given, sizes, *setup)

    @property
    def program(self) -> Program:
        """The program as it was traced."""
        return self.entry.traced.program

    @property
    def lowered(self) -> Program:
        """The program after all passes."""
        return self.entry.lowered

    def as_text(self) -> str:
        """`lowered` as Python text."""
        return str(self.lowered)

    @property
    def source(self) -> str:
        """What runs a call, as Python that runs: of the torch backends a function over torch ops.
        Empty for plans that are no such function."""
        return self.entry.plan.source

    def explain(self, **sizes: int) -> Explanation:
        """The plan: see `JitFunction.explain`. ``sizes`` are those of symbols, by default those of
        the call that was lowered."""
        report = self.entry.plan.report({**self.form.sizes, **sizes})
        return Explanation(report, self.entry.choices)

    def memory(self, **sizes: int) -> Memory:
        """The bytes that a call takes."""
        at = {**self.form.sizes, **sizes}
        report = self.entry.plan.report(at)
        arguments = sum(_bytes(leaf.type, at) for leaf in self.form.wanted)
        stored = sum(_bytes(parameter.type, {}) for parameter in self._parameters)
        return Memory(
            arguments, report.result_bytes, report.arena_bytes, stored, report.parameter_bytes
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, atomically, which `ptir.load_compiled` reads: the program, what it
        captured, and the machine code of its kernels for this CPU.

        Raises `ArgumentError` for what a file cannot hold: containers other than tuples, lists and
        dicts, objects among the arguments, Python functions that are called at run time.
        """
        late_import("gptrs.formats.compiled_file").write(self, Path(path))  # the layer above

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What the function captured, as the program takes it."""
        return self._parameters

    def objects(self) -> dict[str, bytes]:
        """The object code of all kernels, by key."""
        form, entry = self.form, self.entry
        with noted() as found:
            plan = self.backend.plan(entry.lowered, precise=self.options.is_precise)
            plan.report(form.sizes)
            inputs = [cast("Array", None)] * len(form.wanted)  # of no matter to what is loaded
            run = Entry.of(entry.traced, entry.lowered, plan).run
            load(run, plan, [*inputs, *self._parameters], form.sizes)
            return objects_of(found)

    def __repr__(self) -> str:
        return f"<Compiled {self.form.name} of {_types(self.form)}>"


def lower(
    name: str,
    signature: inspect.Signature,
    args: Any,
    kwargs: Any,
    function: FunctionType,
    options: Options,
    overrides: Overrides,
    backend: Backend,
) -> Lowered:
    """`JitFunction.lower`."""
    args, kwargs = stand_ins(args, kwargs)
    captures = Captures(function)
    bound = bind(signature, name, args, kwargs)
    arguments = with_symbols(collect(bound, options, captures))
    captures.entries()
    traced = record(function, arguments, name, options)
    found = captures.parameters
    slots = tuple(found[slot] if isinstance(slot, int) else slot for slot in traced.slots)
    traced = replace(traced, slots=slots)
    form = form_of(arguments, name, options, traced.structure, traced.results)
    return Lowered(traced.program, form, traced, options, overrides, backend)


def compiled_of(
    form: CallForm, traced: Traced, options: Options, overrides: Overrides = NONE
) -> Compiled:
    """The function of a file."""
    backend = selected(options.backend or backend_name())
    entry = planned(traced, form.sizes, backend, options, overrides)
    return Compiled(form, entry, options, overrides, backend)


def parameters_of(traced: Traced) -> tuple[Parameter, ...]:
    """The parameters of a traced function whose slots are fixed."""
    return tuple(cast("Parameter", slot) for slot in traced.slots)


def _types(form: CallForm) -> str:
    return ", ".join(f"{leaf.path}: {leaf.type}" for leaf in form.wanted) or "no arrays"


def _bytes(type: Type, sizes: Any) -> int:
    return size_at(type.size, sizes) * type.dtype.numpy.itemsize
