"""A work item of the attention kernel: one row block of one key-value group.

Emits the code that locates the item from its number in the extent (`locate`), copies its queries
and clears its states (`begin`), and divides by the sums of weights and stores (`finish`). Also the
range of keys that a row sees: [`low`, `high`), from kv_start, kv_len, the causal mask and the
window. Between `begin` and `finish` runs `gptrs.kernels.attention.flash_attention`. Items of the
last rows come first: with a causal mask they take longest, and threads should end together.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from gptrs.kernels.attention.blocks import Head, Scratch, States
from gptrs.kernels.compiler.ir_builder import F32, I32, I64, Function, i64
from gptrs.kernels.rowwise.norm import across

_FAR = 1 << 60
"""Bound of lengths and windows: beyond it nothing changes, and sums of a few fit into an i64."""


class WorkItem:
    """A row block: values in the function that is being written."""

    def __init__(self, f: Function, head: Head, w: dict[str, Any], scratch: Scratch) -> None:
        self.f, self.head, self.w, self.scratch = f, head, w, scratch
        self.states, self.width = States(f), head.width(f.isa)

    def locate(self, item: Any) -> None:
        """Find the item: its batch row, group, rows and the keys that the batch row offers."""
        f, w = self.f, self.w
        rows = f.mul(w["shared"], w["queries"])
        blocks = f.ceiling(rows, w["row_block"])
        pair = f.udiv(item, blocks)
        self.group, self.batch = f.urem(pair, w["groups"]), f.udiv(pair, w["groups"])
        # The last one first: if causal, it takes longest, and threads should end together.
        block = f.sub(f.sub(blocks, i64(1)), f.urem(item, blocks))
        self.top = f.mul(block, w["row_block"])
        self.count = f.least(f.sub(rows, self.top), w["row_block"])
        self.start, end = i64(0), w["keys"]
        self.origin = self.start  # from which blocks of keys are counted
        if self.head.start:
            self.origin = f.within(self._integer("start"), -_FAR, _FAR)
            self.start = f.positive(self.origin)
        if self.head.length:
            end = f.within(self._integer("length"), -_FAR, _FAR)
        self.end = f.least(end, w["keys"])
        self.offset = f.sub(end, w["queries"])  # the position of query 0

    def _integer(self, name: str) -> Any:
        f, kind = self.f, I32 if self.head.index == "i32" else I64
        at = f.mul(self.batch, self.w[f"{name}_stride"])
        value = f.read(f.at(self.w[name], at, kind), kind)
        return value if kind is I64 else f.sext(value, I64)

    def at(self, operand: str, head: Any, token: Any) -> Any:
        """The address of the first element of a token of q, k, v or r (the result)."""
        f, w = self.f, self.w
        place = f.mul(self.batch, w[f"{operand}_batch"])
        place = f.add(place, f.mul(head, w[f"{operand}_head"]))
        place = f.add(place, f.mul(token, w[f"{operand}_token"]))
        element = self.head.element if operand in ("k", "v") else F32
        return f.at(w["result" if operand == "r" else operand], place, element)

    def of_row(self, operand: str, row: Any) -> Any:
        """The address of q or r of a row of this item."""
        f = self.f
        row = f.add(self.top, row)
        shared = self.w["shared"]
        head = f.add(f.mul(self.group, shared), f.urem(row, shared))
        return self.at(operand, head, f.udiv(row, shared))

    def low(self, row: Any) -> Any:
        """The first key that a row of this item sees."""
        if not self.head.window:
            return self.start
        f, position = self.f, self._position(row)
        first = f.sub(f.add(position, i64(1)), f.within(self.w["window"], 1, _FAR))
        return f.select(f.icmp_signed(">", first, self.start), first, self.start)

    def high(self, row: Any) -> Any:
        """The key after the last one that a row of this item sees."""
        if not self.head.causal:
            return self.end
        return self.f.least(self.f.add(self._position(row), i64(1)), self.end)

    def _position(self, row: Any) -> Any:
        return self.f.read(self.f.at(self.scratch.positions, row, I64), I64)

    def begin(self) -> None:
        """Copy the queries, find positions, and clear the rows' states and sums."""
        f, scratch, size, lanes = self.f, self.scratch, self.head.size, self.f.isa.lanes
        zero = ir.Constant(f.vector, [0.0] * lanes)
        with f.loop(i64(0), self.count) as row:
            source = self.of_row("q", row.index)
            at = f.mul(row.index, i64(self.width))
            for d in range(0, size, lanes):
                mask = None if d + lanes <= size else f.mask(i64(size - d))
                value = f.read(f.at(source, i64(d)), mask=mask)
                f.write(value, f.at(scratch.queries, f.add(at, i64(d))))
                f.write(zero, f.at(scratch.sums, f.add(at, i64(d))))
            position = f.add(self.offset, f.udiv(f.add(self.top, row.index), self.w["shared"]))
            f.write(position, f.at(scratch.positions, row.index, I64))
            state = self.states.of(scratch.states, row.index)
            f.write(ir.Constant(F32, -math.inf), self.states.top(state))
            f.write(zero, self.states.total(state))

    def finish(self) -> None:
        """Divide by the sums of weights and store; a row that saw nothing gives 0."""
        f, scratch, size, lanes = self.f, self.scratch, self.head.size, self.f.isa.lanes
        one = ir.Constant(F32, 1.0)
        with f.loop(i64(0), self.count) as row:
            state = self.states.of(scratch.states, row.index)
            total = across(f, f.read(self.states.total(state)), f.fadd)
            # With a key seen the sum is 1 or more; NaN compares false and stays.
            total = f.select(f.fcmp_ordered("<", total, one), one, total)
            share = f.splat(f.fdiv(one, total))
            source = f.at(scratch.sums, f.mul(row.index, i64(self.width)))
            target = self.of_row("r", row.index)
            for d in range(0, size, lanes):
                mask = None if d + lanes <= size else f.mask(i64(size - d))
                f.write(f.fmul(f.read(f.at(source, i64(d))), share), f.at(target, i64(d)), mask)
