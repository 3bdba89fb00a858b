"""`custom_calls.arrange_products`: operands of products in layouts and dtypes that kernels read."""

from __future__ import annotations

from gptrs.backends.faer.calls.product import MatrixProduct
from gptrs.backends.faer.calls.tiled_product import TiledProduct
from gptrs.backends.faer.shallow_products import with_shallow_sums
from gptrs.backends.memory_operands import Graph
from gptrs.errors import Location
from gptrs.ir.dispatch import OPS
from gptrs.ir.implementations.kernels import kernel_for
from gptrs.ir.interpreters import Recorder
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, f32


def arranged(program: Program) -> Program:
    """The program with transposes before products whose operands no kernel can read in their
    layout; shallow products are sums."""
    program = with_shallow_sums(program)
    graph = Graph(program)
    body: list[Instruction] = []
    renamed: dict[Value, Value] = {}
    for instruction in program.body:
        instruction = instruction.reading(renamed)
        if instruction.op is not dot_general or kernel_for(instruction) is not None:
            body.append(instruction)
            continue
        result, product = instruction.result, _in_f32(instruction, body)
        body.append(product if _can_read(product, graph) else _transposed(product, body))
        if product is not instruction:
            renamed[result] = product.result
            if product.result.type.dtype is not result.type.dtype:
                renamed[result] = _cast(product.result, result.type.dtype, body, product.where)
    return program.with_body(body, [renamed.get(r, r) for r in program.results])


def _can_read(product: Instruction, graph: Graph) -> bool:
    """Whether kernels can read the operands, or no kernel could wherever they lay."""
    plain = product.result.type.dtype is f32 and MatrixProduct.reads(product, graph)
    return plain or TiledProduct.reads(product, graph) or not TiledProduct.supports(product)


def _in_f32(product: Instruction, body: list[Instruction]) -> Instruction:
    """A product of fp8 as the product of f32 (or of its accumulator's dtype) that it is defined as;
    the conversions of its operands join ``body``."""
    dtypes = {operand.type.dtype for operand in product.values()}
    if not all(dtype.is_float and dtype.bits == 8 for dtype in dtypes):
        return product
    wide = (product.attrs["accum_dtype"] or f32).compute
    operands = tuple(_cast(operand, wide, body, product.where) for operand in product.values())
    attrs = {**product.attrs, "accum_dtype": None, "out_dtype": None}
    result = Value(product.result.type.with_dtype(wide), product.result.origin)
    return Instruction(product.op, operands, attrs, (result,), product.where)


def _cast(x: Value, dtype: DType, body: list[Instruction], where: Location | None) -> Value:
    result = Value(x.type.with_dtype(dtype), x.origin)
    body.append(Instruction(OPS["cast"], (x,), {"dtype": dtype}, (result,), where))
    return result


def _transposed(product: Instruction, body: list[Instruction]) -> Instruction:
    """A product of operands with axes in the order batch, rest, contracted; the transposes join
    ``body``."""
    attrs = dict(product.attrs)
    operands: list[Value] = []
    for side, operand in zip(("lhs", "rhs"), product.values(), strict=True):
        batch, contracted = attrs[f"batch_{side}"], attrs[f"contract_{side}"]
        rank = operand.type.rank
        rest = [axis for axis in range(rank) if axis not in (*batch, *contracted)]
        recorder = Recorder("arrange", where=product.where)
        moved = recorder.apply(
            OPS["transpose"],
            (Tensor.of_value(operand, recorder),),
            {"perm": (*batch, *rest, *contracted)},
        )
        body.extend(recorder.body)
        operands.append(moved.value)
        attrs[f"batch_{side}"] = tuple(range(len(batch)))
        attrs[f"contract_{side}"] = tuple(range(rank - len(contracted), rank))
    return Instruction(product.op, tuple(operands), attrs, product.results, product.where)
