"""Composites that torch has: claimed whole. All others are left to their definitions."""

from __future__ import annotations

from gptrs.backends.torch.op_table.row import FLOAT, FLOATING, Row, Rows
from gptrs.ir.ops import composite, language, vision
from gptrs.ir.program import Instruction, Operation


def _is_symmetric(instruction: Instruction) -> bool:
    """Whether torch's pooling has the padding: the same on both sides, at most half a window."""
    padding, window = instruction.attrs["padding"], instruction.attrs["window"]
    return all(low == high and 2 * low <= n for (low, high), n in zip(padding, window, strict=True))


def _has_elements(instruction: Instruction) -> bool:
    """Whether torch's convolutions and pooling take the operands: no extent is 0."""
    values = (*instruction.values(), *instruction.results)
    return all(not isinstance(n, int) or n > 0 for v in values for n in v.type.shape)


def _pools(instruction: Instruction) -> bool:
    return _is_symmetric(instruction) and _has_elements(instruction)


def _activation(text: str) -> Rows:
    return (Row(text, kinds=FLOAT, narrow=True),)


_CONV = "{strides}, {padding}, {dilation}"

ROWS: dict[Operation, Rows] = {
    composite.matmul: (Row("torch.matmul({0}, {1})", kinds=FLOATING, narrow_devices=True),),
    composite.linear: (
        Row("pt.linear({0}, {1}, {2}, {transposed})", kinds=FLOATING, narrow_devices=True),
    ),
    composite.mean: (Row("pt.mean({0}, {axes}, {keepdims})", kinds=FLOATING),),
    composite.softmax: (Row("torch.softmax({0}, {axis})", kinds=FLOAT, narrow=True),),
    composite.log_softmax: (
        Row("torch.log_softmax({0}, {axis})", kinds=FLOAT, narrow_devices=True),
    ),
    composite.layer_norm: (
        Row("pt.layer_norm({0}, {1}, {2}, {eps})", kinds=FLOAT, narrow_devices=True),
    ),
    composite.sigmoid: _activation("torch.sigmoid({0})"),
    composite.relu: (Row("pt.relu({0})", narrow=True),),
    composite.silu: _activation("F.silu({0})"),
    composite.gelu: _activation("pt.gelu({0})"),
    composite.gelu_tanh: _activation('F.gelu({0}, approximate="tanh")'),
    composite.attention: (
        Row(
            "pt.attention({0}, {1}, {2}, {3}, {4}, {causal}, {scale}, {window}, {softcap})",
            kinds=("float", "int", "uint"),
            narrow_devices=True,
        ),
    ),
    language.rms_norm: (Row("pt.rms_norm({0}, {1}, {eps})", kinds=FLOAT, narrow_devices=True),),
    vision.conv2d: (
        Row(
            f"pt.conv2d({{0}}, {{1}}, {{2}}, {_CONV}, {{groups}})",
            kinds=FLOAT,
            narrow_devices=True,
            shares=True,
            when=_has_elements,
        ),
    ),
    vision.depthwise_conv2d: (
        Row(
            f"pt.depthwise_conv2d({{0}}, {{1}}, {{2}}, {_CONV})",
            kinds=FLOAT,
            narrow_devices=True,
            shares=True,
            when=_has_elements,
        ),
    ),
    vision.max_pool2d: (
        Row(
            "pt.max_pool2d({0}, {window}, {strides}, {padding}, {dilation})",
            kinds=FLOAT,
            narrow=True,
            shares=True,
            when=_has_elements,
        ),
    ),
    vision.avg_pool2d: (
        Row(
            "pt.avg_pool2d({0}, {window}, {strides}, {padding}, {count_include_pad})",
            kinds=FLOAT,
            shares=True,
            when=_pools,
        ),
    ),
    vision.relu6: (Row("pt.relu6({0})", narrow=True),),
}
