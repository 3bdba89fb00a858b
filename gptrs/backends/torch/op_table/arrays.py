"""Reductions, products, data movement, indices, windows, order, random numbers, matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gptrs.backends.torch.op_table.row import FLOATING, REAL, Row, Rows
from gptrs.ir.ops import (
    contract,
    dynamic,
    fft,
    index,
    linalg,
    literal,
    random,
    reduce,
    segment,
    shape,
    sort,
    window,
)
from gptrs.ir.program import Instruction, Operation
from gptrs.ir.types import DType, Kind, as_dtype, f64, si64

_NUMERIC: tuple[Kind, ...] = ("int", "uint", "float", "complex")


def _operand(instruction: Instruction) -> DType:
    return next(instruction.values()).type.dtype


def _accumulator(instruction: Instruction) -> DType:
    """The dtype that sums are taken in."""
    given: DType | None = instruction.attrs.get("accum_dtype")
    return (given or _operand(instruction)).compute


def _neutral(instruction: Instruction) -> Mapping[str, Any]:
    """Padding that changes no window: that of the dtype before it is widened."""
    neutral = window.neutral_of(instruction.attrs["reduce"], _operand(instruction))
    return {"neutral": float(neutral) if _operand(instruction).is_float else neutral}


def _empty(instruction: Instruction) -> Mapping[str, Any]:
    """The result of a segment without rows."""
    dtype = _operand(instruction)
    empty = segment.empty_segment(dtype, instruction.attrs["reduce"])
    return {"empty": int(empty) if dtype.is_integer else empty}


def _ends(instruction: Instruction) -> Mapping[str, Any]:
    attrs = instruction.attrs
    dtype: DType = as_dtype(attrs["dtype"])
    ends = random.ends(attrs["low"], attrs["high"], dtype)
    return {"ends": ends, "wide": dtype is f64}


def _is_f64(instruction: Instruction) -> Mapping[str, Any]:
    return {"wide": as_dtype(instruction.attrs["dtype"]) is f64}


def _always_f64(_: Instruction) -> DType:
    return f64


def _drawn(instruction: Instruction) -> DType:
    return instruction.result.type.dtype.compute


def _always_si64(_: Instruction) -> DType:
    return si64


def _rounds_up_in_f32(instruction: Instruction) -> bool:
    """Whether the numbers are drawn in a dtype whose words torch can shift."""
    return instruction.result.type.dtype.is_float


_REDUCED = "{axes}, {keepdims}"
_CUMULATIVE: dict[Operation, str] = {
    reduce.cumsum: "cumsum",
    reduce.cumprod: "cumprod",
    reduce.cummax: "cummax",
    reduce.cummin: "cummin",
}
_WINDOW = "{window}, {strides}, {dilation}, {padding}"
_DOT = "{batch_lhs}, {batch_rhs}, {contract_lhs}, {contract_rhs}"

ROWS: dict[Operation, Rows] = {
    reduce.reduce_sum: (
        Row(f"pt.reduce_sum({{0}}, {_REDUCED}, {{acc}})", computes=_accumulator, ui64=True),
    ),
    reduce.reduce_prod: (
        Row(f"pt.reduce_prod({{0}}, {_REDUCED}, {{acc}})", computes=_accumulator, ui64=True),
    ),
    reduce.reduce_max: (Row(f"pt.reduce_max(run, {{0}}, {_REDUCED})", narrow=True),),
    reduce.reduce_min: (Row(f"pt.reduce_min(run, {{0}}, {_REDUCED})", narrow=True),),
    reduce.reduce_any: (Row(f"pt.reduce_any({{0}}, {_REDUCED})"),),
    reduce.reduce_all: (Row(f"pt.reduce_all({{0}}, {_REDUCED})"),),
    reduce.argmax: (Row("pt.argmax(run, {0}, {axis}, {keepdims})", narrow=True),),
    reduce.argmin: (Row("pt.argmin(run, {0}, {axis}, {keepdims})", narrow=True),),
    **{op: (Row(f'pt.cumulative("{name}", {{0}}, {{axis}})'),) for op, name in _CUMULATIVE.items()},
    contract.dot_general: (
        Row(
            f"pt.dot_general({{0}}, {{1}}, {_DOT}, {{acc}}, {{acc}})",
            kinds=_NUMERIC,
            computes=_accumulator,
        ),
    ),
    shape.reshape: (Row("{0}.reshape({shape})", moves=True, shares=True),),
    shape.transpose: (Row("{0}.permute({perm})", moves=True, shares=True),),
    shape.broadcast_to: (Row("{0}.expand({shape})", moves=True, shares=True),),
    shape.slice_: (Row("pt.slice_({0}, {starts}, {sizes}, {strides})", moves=True, shares=True),),
    shape.concat: (Row("torch.cat({0}, {axis})", moves=True),),
    shape.pad: (Row("pt.pad({0}, {low}, {high}, {interior}, {value})", moves=True),),
    shape.tile: (Row("pt.tile({0}, {reps})", moves=True),),
    dynamic.dynamic_slice: (Row("pt.dynamic_slice({0}, {1}, {sizes})", moves=True, shares=True),),
    dynamic.dynamic_update_slice: (Row("pt.dynamic_update_slice({0}, {1}, {2})", moves=True),),
    index.take: (Row("pt.take(run, {0}, {1})", moves=True),),
    index.gather: (Row("pt.gather(run, {0}, {1}, {axis})", moves=True),),
    index.scatter_add: (Row("pt.scatter_add(run, {0}, {1}, {2}, {axis})", ui64=True),),
    index.scatter_reduce: (
        Row(
            "pt.scatter_reduce(run, {0}, {1}, {2}, {axis}, {reduce})",
            moves=True,
            when=lambda i: i.attrs["reduce"] == "replace",
        ),
        Row("pt.scatter_reduce(run, {0}, {1}, {2}, {axis}, {reduce})", kinds=REAL),
    ),
    segment.segment_reduce: (
        Row(
            "pt.segment_reduce(run, {0}, {1}, {count}, {reduce}, {empty})",
            extras=_empty,
            when=lambda i: not (_operand(i).is_complex and i.attrs["reduce"] == "mul"),
            but="products of complex numbers",
        ),
    ),
    window.reduce_window: (
        Row(
            f"pt.reduce_window({{0}}, {{reduce}}, {_WINDOW}, {{neutral}})",
            computes=_accumulator,
            extras=_neutral,
            when=lambda i: i.attrs["accum_dtype"] is None,
            but="with `accum_dtype`",
        ),
    ),
    window.extract_patches: (Row(f"pt.extract_patches({{0}}, {_WINDOW}, {{value}})", moves=True),),
    literal.full: (
        Row("torch.full({shape}, {value}, dtype={out}, device=run.device)", moves=True),
    ),
    literal.iota: (
        Row(
            "pt.iota({shape}, {axis}, {acc}, run.device)",
            shares=True,
            when=lambda i: not i.result.type.dtype.is_complex,
        ),
    ),
    sort.sort: (Row("pt.sort({0}, {axis}, {descending})", narrow=True),),
    sort.top_k: (Row("pt.top_k(run, {0}, {k}, {axis}, {largest})", narrow=True, shares=True),),
    sort.searchsorted: (Row("pt.searchsorted({0}, {1}, {right})", narrow=True),),
    random.rng_uniform: (
        Row(
            "pt.rng_uniform({0}, {shape}, {low}, {high}, {ends}, {wide})",
            ui64=True,
            computes=_drawn,
            extras=_ends,
            when=_rounds_up_in_f32,
        ),
    ),
    random.rng_normal: (
        Row(
            "pt.rng_normal({0}, {shape}, {mean}, {std}, {wide})",
            ui64=True,
            computes=_always_f64,
            extras=_is_f64,
        ),
    ),
    random.random_bits: (
        Row(
            "pt.random_bits({0}, {1}, {shape}, {bits}, {stream})", ui64=True, computes=_always_si64
        ),
    ),
    fft.fft_c2c: (Row("pt.fft_c2c({0}, {n}, {axis}, {inverse}, {norm})"),),
    fft.fft_r2c: (Row("pt.fft_r2c({0}, {n}, {axis}, {norm})"),),
    fft.fft_c2r: (Row("pt.fft_c2r({0}, {n}, {axis}, {norm})"),),
    linalg.cholesky: (Row("pt.cholesky(run, {0}, {upper})", shares=True),),
    linalg.solve: (Row("pt.solve(run, {0}, {1})", kinds=FLOATING, shares=True),),
    linalg.inv: (Row("pt.inv(run, {0})", shares=True),),
    linalg.det: (Row("torch.linalg.det({0})"),),
    linalg.slogdet: (Row("pt.slogdet({0})", shares=True),),
}
