"""LLVM IR builder for kernels: functions, loops with carried values, vectors of f32.

`Function` is llvmlite's `IRBuilder` in a new function, for one vector level (`Isa`), with loops,
masked loads and stores, prefetch, transposition and argument blocks. It emits no fast-math flag:
every operation rounds by itself, in the order written, so that equal formulas give equal bits
wherever they are emitted. `Builder` has the operations that also work on scalars. The result of a
generator is a `KernelText`, the input of `gptrs.kernels.compiler.compile.compile_ir`.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.compiler.partial_store import has_mask_registers, store_first
from gptrs.lazy_dataclass import dataclass

I1, I8, I16 = ir.IntType(1), ir.IntType(8), ir.IntType(16)
I32, I64 = ir.IntType(32), ir.IntType(64)
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
POINTER, VOID = ir.PointerType(), ir.VoidType()


class KernelText(NamedTuple):
    """LLVM IR and the name of the kernel in it: ``compile_ir(*kernel_text)``."""

    text: str
    name: str


def i64(value: int) -> Any:
    """A constant of 64 bits."""
    return ir.Constant(I64, value)


def i32(value: int) -> Any:
    """A constant of 32 bits."""
    return ir.Constant(I32, value)


def like(x: Any, value: float) -> Any:
    """The constant of the type of ``x``; the elements of a vector are all ``value``."""
    kind = x.type
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


@dataclass
class Loop:
    """A loop being written: its index, and its loop-carried values.

    Set ``values`` in the body for the next iteration; after the loop they are the last ones.
    """

    index: Any
    values: list[Any]


class Builder(ir.IRBuilder):
    """An IR builder with loops and arithmetic, for vectors and scalars alike."""

    def at(self, pointer: Any, index: Any, element: Any = F32) -> Any:
        """The address of element ``index``."""
        return self.gep(pointer, [index], source_etype=element)

    @contextmanager
    def loop(self, first: Any, last: Any, step: Any = None, carried: Any = ()) -> Generator[Loop]:
        """``for index in range(first, last, step)``, with loop-carried values in registers."""
        before = self.block
        head, body, end = (self.append_basic_block(name) for name in ("head", "body", "end"))
        self.branch(head)
        self.position_at_end(head)
        index, *values = phis = [self.phi(value.type) for value in (first, *carried)]
        for phi, value in zip(phis, (first, *carried), strict=True):
            phi.add_incoming(value, before)
        self.cbranch(self.icmp_signed("<", index, last), body, end)
        self.position_at_end(body)
        loop = Loop(index, list(values))
        yield loop
        following = self.add(index, i64(1) if step is None else step)
        for phi, value in zip(phis, (following, *loop.values), strict=True):
            phi.add_incoming(value, self.block)
        self.branch(head)
        self.position_at_end(end)
        loop.values = list(values)

    def splat(self, value: Any, lanes: int) -> Any:
        """A vector with ``value`` in each lane."""
        kind = ir.VectorType(value.type, lanes)
        first = self.insert_element(ir.Constant(kind, ir.Undefined), value, i32(0))
        places = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
        return self.shuffle_vector(first, ir.Constant(kind, ir.Undefined), places)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a·b + c, rounded once where the CPU has such an instruction, else twice."""
        return self._call_on("fmuladd", a, b, c)

    def fused(self, a: Any, b: Any, c: Any) -> Any:
        """a·b + c, rounded once; without such an instruction, by the C library."""
        return self._call_on("fma", a, b, c)

    def magnitude(self, x: Any) -> Any:
        """|x|."""
        return self._call_on("fabs", x)

    def root(self, x: Any) -> Any:
        """√x."""
        return self._call_on("sqrt", x)

    def floored(self, x: Any) -> Any:
        """The greatest whole number ≤ x."""
        return self._call_on("floor", x)

    def truncated(self, x: Any) -> Any:
        """x without its fraction."""
        return self._call_on("trunc", x)

    def copy_sign(self, x: Any, y: Any) -> Any:
        """|x| with the sign of y."""
        return self._call_on("copysign", x, y)

    def maximum(self, x: Any, y: Any) -> Any:
        """The greater; NaN wins, and +0 over −0."""
        return self._call_on("maximum", x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        """The lesser; NaN wins, and −0 over +0."""
        return self._call_on("minimum", x, y)

    def transposed(self, rows: Sequence[Any]) -> list[Any]:
        """The transpose of as many vectors as they have lanes, both a power of two.

        Blocks on the two sides of the diagonal change places, for blocks of 1, 2, 4, ...
        """
        result, lanes, size = list(rows), len(rows), 1
        kind = ir.VectorType(I32, lanes)
        while size < lanes:
            upper = [lanes + i - size if i & size else i for i in range(lanes)]
            lower = [lanes + i if i & size else i + size for i in range(lanes)]
            for i in (i for i in range(lanes) if not i & size):
                pair = result[i], result[i + size]
                result[i] = self.shuffle_vector(*pair, ir.Constant(kind, upper))
                result[i + size] = self.shuffle_vector(*pair, ir.Constant(kind, lower))
            size *= 2
        return result

    def _call_on(self, name: str, *operands: Any) -> Any:
        """LLVM's function of that name for operands of one type, which the result has too."""
        kind = operands[0].type
        function = self.intrinsic(f"{name}.{_suffix(kind)}", kind, *(x.type for x in operands))
        return self.call(function, operands)

    def intrinsic(self, name: str, result: Any, *parameters: Any) -> Any:
        """LLVM's function ``llvm.<name>``."""
        name = f"llvm.{name}"
        found = self.module.globals.get(name)
        return found or ir.Function(self.module, ir.FunctionType(result, parameters), name)


class Function(Builder):
    """An IR builder in a new function, for the vector level ``isa``.

    Indices and strides count elements; nothing is assumed of an address beyond an element's
    alignment.
    """

    def __init__(self, module: Any, isa: Isa, name: str, *parameters: Any) -> None:
        self.made: Any = ir.Function(module, ir.FunctionType(VOID, parameters), name)
        super().__init__(self.made.append_basic_block("entry"))
        self.arguments: tuple[Any, ...] = self.made.args
        self.isa = isa
        self.vector: Any = ir.VectorType(F32, isa.lanes)
        self._counts: dict[int, tuple[Any, Any]] = {}  # of masks, by their ids

    @classmethod
    def kernel(cls, module: Any, isa: Isa, name: str) -> Function:
        """A kernel: its arguments are the address of its argument block, and a range, ``first,
        last``."""
        made = cls(module, isa, name, I64, I64, I64)
        for argument, word in zip(made.arguments, ("arguments", "first", "last"), strict=True):
            argument.name = word
        return made

    @classmethod
    def part(cls, module: Any, isa: Isa, name: str, *parameters: Any) -> Function:
        """A function that kernels call; never inlined, so that its loops get all registers."""
        made = cls(module, isa, name, *parameters)
        made.made.attributes.add("noinline")
        return made

    def argument_block(
        self, address: Any, pointers: Sequence[str], sizes: Sequence[str]
    ) -> dict[str, Any]:
        """Loads the argument block at ``address``, by name: first pointers, then sizes."""
        block = self.inttoptr(address, POINTER)
        found: dict[str, Any] = {}
        for i, name in enumerate((*pointers, *sizes)):
            kind = POINTER if i < len(pointers) else I64
            found[name] = self.load(self.at(block, i64(i), I64), name, align=8, typ=kind)
        return found

    def stack_array(self, count: int, kind: Any = F32) -> Any:
        """``count`` elements on the stack, at the beginning of a cache line."""
        made: Any = self.alloca(kind, i64(count))
        made.type = POINTER
        made.align = 64
        return made

    def word(self, pointer: Any) -> Any:
        """The i64 at ``pointer``."""
        return self.load(pointer, align=8, typ=I64)

    def read(self, pointer: Any, kind: Any = None, mask: Any = None) -> Any:
        """The vector (of f32, unless ``kind`` says else) or scalar at ``pointer``.

        With a ``mask``, a vector that is zero elsewhere; no other element is read.
        """
        kind = self.vector if kind is None else kind
        if mask is None:
            return self.load(pointer, align=_element_bytes(kind), typ=kind)
        name = f"masked.load.{_suffix(kind)}.p0"
        load = self.intrinsic(name, kind, POINTER, I32, mask.type, kind)
        return self.call(load, [pointer, i32(_element_bytes(kind)), mask, ir.Constant(kind, None)])

    def write(self, value: Any, pointer: Any, mask: Any = None) -> None:
        """Store a vector or scalar; with a ``mask``, a vector's elements there and no others."""
        kind = value.type
        if mask is None:
            self.store(value, pointer, align=_element_bytes(kind))
            return
        name = f"masked.store.{_suffix(kind)}.p0"
        store = self.intrinsic(name, VOID, kind, POINTER, I32, mask.type)
        self.call(store, [value, pointer, i32(_element_bytes(kind)), mask])

    def stream(self, value: Any, pointer: Any, alignment: int) -> None:
        """Store a vector past the caches, without reading its line first. Other threads may see it
        after later stores, unless there is a fence between."""
        made: Any = self.store(value, pointer, align=alignment)
        made.set_metadata("nontemporal", self.module.add_metadata([i32(1)]))

    def write_all(
        self, values: Sequence[Any], pointers: Sequence[Any], mask: Any, *, in_pieces: bool = True
    ) -> None:
        """`write` of several vectors of one type with the same `mask`, or None: without masked
        stores where they are slow and all lanes are written, or ``in_pieces``."""

        def write(mask: Any) -> None:
            for value, pointer in zip(values, pointers, strict=True):
                self.write(value, pointer, mask)

        made = self._counts.get(id(mask))
        if made is None or has_mask_registers(self.isa):
            write(mask)
            return
        whole = self.icmp_signed(">=", made[1], i64(values[0].type.count))
        with self.if_else(whole) as (every, some):
            with every:
                write(None)
            with some:
                if in_pieces:
                    store_first(self, values, pointers, self.positive(made[1]))
                else:
                    write(mask)

    def mask(self, count: Any, lanes: int = 0) -> Any:
        """The mask of the lanes before ``count``, an i64 of any value."""
        lanes = lanes or self.isa.lanes
        wanted = self.splat(self.trunc(self.within(count, 0, lanes), I32), lanes)
        kind = ir.VectorType(I32, lanes)
        mask = self.icmp_signed("<", ir.Constant(kind, list(range(lanes))), wanted)
        self._counts[id(mask)] = mask, count
        return mask

    def prefetch(self, pointer: Any, cache: int = 1) -> None:
        """Prefetch the cache line at ``pointer``, which may be any address, mapped or not.

        It comes into caches from L``cache`` on: 1 for data needed within some hundred cycles, 2 for
        data needed later. L1 has few buffers for lines in flight.
        """
        function = self.intrinsic("prefetch.p0", VOID, POINTER, I32, I32, I32)
        self.call(function, [pointer, i32(0), i32(4 - cache), i32(1)])

    def splat(self, value: Any, lanes: int = 0) -> Any:
        """A vector with ``value`` in each lane."""
        return super().splat(value, lanes or self.isa.lanes)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a·b + c, rounded once where the level has such an instruction, else twice."""
        return self._call_on("fma", a, b, c) if self.isa.fma else self.fadd(self.fmul(a, b), c)

    def opaque(self, value: Any) -> Any:
        """A pointer or i64 that the optimiser knows nothing of: it stays in a register of its own
        instead of being computed from others."""
        kind = ir.FunctionType(value.type, [value.type])
        return self.call(ir.InlineAsm(kind, "", "=r,0"), [value])

    def least(self, a: Any, b: Any) -> Any:
        """The lesser of two signed i64."""
        return self.select(self.icmp_signed("<", a, b), a, b)

    def positive(self, value: Any) -> Any:
        """A signed i64, or 0 if it is negative."""
        return self.select(self.icmp_signed(">", value, i64(0)), value, i64(0))

    def within(self, value: Any, low: int, high: int) -> Any:
        """A signed i64, clamped to ``low`` and ``high``."""
        value = self.least(value, i64(high))
        return self.select(self.icmp_signed(">", value, i64(low)), value, i64(low))

    def ceiling(self, a: Any, b: Any) -> Any:
        """⌈a / b⌉ of i64, a ≥ 0 and b > 0."""
        return self.udiv(self.add(a, self.sub(b, i64(1))), b)

    def pieces(self, rows: Any, columns: Any, width: int = 0) -> Iterator[tuple[Any, Any, Any]]:
        """A loop over ``rows`` x ``columns`` in vectors: ``for row, column, mask in pieces(...)``.

        The body is written twice: for whole vectors, with None for a mask, and for the rest of a
        row.
        """
        lanes = i64(width or self.isa.lanes)
        full = self.sub(columns, self.urem(columns, lanes))
        with self.loop(i64(0), rows) as row:
            with self.loop(i64(0), full, lanes) as column:
                yield row.index, column.index, None
            with self.if_then(self.icmp_signed("<", full, columns)):
                yield row.index, full, self.mask(self.sub(columns, full), width)

    def all_finite(self, pointer: Any, count: Any) -> Any:
        """Whether none of ``count`` elements at ``pointer`` is infinite or NaN."""
        lanes = i64(self.isa.lanes)
        infinite = ir.Constant(self.vector, [math.inf] * self.isa.lanes)
        none = ir.Constant(ir.VectorType(I1, self.isa.lanes), None)
        whole = self.sub(count, self.urem(count, lanes))
        with self.loop(i64(0), whole, lanes, carried=[none]) as loop:
            size = self.magnitude(self.read(self.at(pointer, loop.index)))
            loop.values[0] = self.or_(loop.values[0], self.fcmp_unordered("==", size, infinite))
        rest = self.read(self.at(pointer, whole), mask=self.mask(self.sub(count, whole)))
        odd = self.or_(loop.values[0], self.fcmp_unordered("==", self.magnitude(rest), infinite))
        kind = ir.IntType(self.isa.lanes)
        return self.icmp_signed("==", self.bitcast(odd, kind), ir.Constant(kind, 0))

    def choose(self, value: Any, cases: Sequence[tuple[int, Any, Sequence[Any]]]) -> None:
        """Call the function of the case (number, function, arguments) that ``value`` equals."""
        end = self.append_basic_block("chosen")
        switch = self.switch(value, end)
        for number, function, arguments in cases:
            block = self.append_basic_block(f"case{number}")
            switch.add_case(i64(number), block)
            self.position_at_end(block)
            self.call(function, arguments)
            self.branch(end)
        self.position_at_end(end)


def _element_bytes(kind: Any) -> int:
    return _BYTES[str(kind.element if isinstance(kind, ir.VectorType) else kind)]


_BYTES = {
    "float": 4,
    "double": 8,
    "half": 2,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "i128": 8,
    "ptr": 8,
}


def _suffix(kind: Any) -> str:
    """How LLVM writes a type in the name of an intrinsic."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_suffix(kind.element)}"
    return {"double": "f64", "float": "f32", "half": "f16"}.get(str(kind), str(kind))
