"""Structural matcher: comparison of a pattern (a traced spelling) with a part of a program.

Two instructions are equal when op, attributes and operands are, the operands of commutative ops in
either order. A parameter of the pattern matches any value of its type. The matcher backtracks over
immutable bindings. It also accepts these differences:

- products are compared by their factors (not when rounding must stay);
- a matrix product may have its axes in another order, its operands are then transposed;
- where the pattern reshapes or transposes a parameter, the program may have the result only;
- axes of extent 1 may be inserted later: after a ``reduce_*`` without keepdims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from gptrs.ir.dims import Shape
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.elementwise import div, mul, neg, pow_, reciprocal, rsqrt, sqrt
from gptrs.ir.ops.shape import broadcast_to, reshape, transpose
from gptrs.ir.program import Instruction, Operand, Param, Value, key_of
from gptrs.ir.types import DType
from gptrs.passes.idioms.bindings import Match, Move, Moved, undone
from gptrs.passes.idioms.equivalence import (
    aligned,
    axes_of,
    same_attrs,
    same_but_for_ones,
    same_place,
    sum_dtypes,
)
from gptrs.passes.idioms.patterns import Hole, Pattern, close
from gptrs.passes.idioms.products import Factor, Makers, factors_of, number_of

_PRODUCTS = frozenset([mul, div, neg, reciprocal, sqrt, rsqrt, pow_])
_MOST_STEPS = 4000
_Open = tuple[Operand, Fraction, Shape | None]
"""A factor of the program with its power, and its shape if axes of extent 1 are put in later."""


class Matcher:
    """Matches one pattern against one program, whose definitions are ``makers``."""

    def __init__(self, pattern: Pattern, makers: Makers, *, precise: bool) -> None:
        self._pattern = pattern
        self._makers = makers
        self._precise = precise
        self._steps = 0

    def match(self, root: Value) -> Match | None:
        """The bindings of the pattern when ``root`` computes it, else None."""
        return next(self._match(self._pattern.root, root, Match()), None)

    def _match(self, node: Operand, found: Operand, match: Match) -> Iterator[Match]:
        self._steps += 1
        if self._steps > _MOST_STEPS:  # as far as a product of very many factors
            return
        if not isinstance(node, Value):
            yield from self._literal(node, found, match)
        elif isinstance(node, Param):
            yield from self._param(node, found, (), match)
        elif isinstance(found, Value) and match.nodes.get(node) is found:
            yield match
        elif isinstance(found, Value) and same_but_for_ones(node.type, found.type):
            for after in self._node(node, found, match):
                yield after.with_node(node, found)

    def _literal(self, literal: Operand, found: Operand, match: Match) -> Iterator[Match]:
        if isinstance(literal, tuple):
            if isinstance(found, tuple) and len(found) == len(literal):
                yield from self._all(list(zip(literal, found, strict=True)), match)
            return
        number = number_of(found, self._makers)
        if isinstance(literal, Hole):
            after = None if number is None else match.with_hole(literal, number)
            if after is not None:
                yield after
        elif isinstance(literal, int | float) and not isinstance(literal, bool):
            dtype = found.type.dtype if isinstance(found, Value) else None
            if number is not None and self._same_number(literal, number, dtype):
                yield match
        elif not isinstance(found, Value | tuple) and key_of(literal) == key_of(found):
            yield match

    def _same_number(self, a: float, b: float, dtype: DType | None) -> bool:
        if self._precise and dtype is not None:
            a, b = np.array([a, b], dtype.numpy).tolist()
        return close(a, b, relative=0.0 if self._precise else 1e-6)

    def _param(
        self, param: Param, found: Operand, moves: tuple[Move, ...], match: Match
    ) -> Iterator[Match]:
        if not isinstance(found, Value):
            return
        if not moves and found.type != param.type:
            return
        after = match.with_param(param, Moved(found, moves))
        if after is not None:
            yield after

    def _all(self, pairs: Sequence[tuple[Operand, Operand]], match: Match) -> Iterator[Match]:
        if not pairs:
            yield match
            return
        (node, found), *rest = pairs
        for after in self._match(node, found, match):
            yield from self._all(rest, after)

    def _node(self, node: Value, found: Value, match: Match) -> Iterator[Match]:
        wanted = self._pattern.makers[node]
        if wanted.op in _PRODUCTS and node.type.dtype.is_float and not self._precise:
            yield from self._product(node, found, match)
            return
        maker = self._made(found)
        matched = False
        if maker is not None and maker.op is wanted.op:
            for after in self._instruction(wanted, maker, match):
                matched = True
                yield after
        operand = wanted.operands[0] if wanted.operands else None
        if wanted.op in (reshape, transpose) and isinstance(operand, Param):
            if not matched and node.type == found.type:
                yield from self._param(operand, found, (undone(wanted, operand),), match)
        elif not matched and maker is not None and maker.op is reshape:
            yield from self._match(node, maker.operands[0], match)

    def _made(self, value: Value) -> Instruction | None:
        maker = self._makers.get(value)
        return maker if maker is not None and len(maker.results) == 1 else None

    def _instruction(
        self, wanted: Instruction, maker: Instruction, match: Match
    ) -> Iterator[Match]:
        if wanted.op is dot_general:
            yield from self._dot(wanted, maker, match)
            return
        if not same_attrs(wanted, maker) or len(wanted.operands) != len(maker.operands):
            return
        for operands in [maker.operands, maker.operands[::-1]][: 1 + wanted.op.commutative]:
            pairs = list(zip(wanted.operands, operands, strict=True))
            if wanted.op.elementwise or all(self._in_place(wanted, *pair) for pair in pairs):
                yield from self._all(pairs, match)

    def _in_place(self, wanted: Instruction, node: Operand, found: Operand) -> bool:
        """Whether operands have their axes in the same positions, for an op that distinguishes
        them."""
        if not isinstance(node, Value) or not isinstance(found, Value):
            return True
        if wanted.op is broadcast_to:
            return aligned(node.type.shape, found.type.shape)
        return node.type == found.type

    def _product(self, node: Value, found: Value, match: Match) -> Iterator[Match]:
        """Match ``node`` and ``found`` as products: the same factors, in any order."""
        product = self._pattern.product(node)
        parts = factors_of((found, Fraction(1)), self._makers)
        if parts is None:
            maker = self._made(found)
            if maker is not None and maker.op is reshape:
                yield from self._match(node, maker.operands[0], match)
            return
        open_: list[_Open] = [(operand, power, None) for operand, power in parts]
        for after, coefficient in self._factors(
            (node, found), [*product.factors], open_, 1.0, match
        ):
            if isinstance(product.coefficient, Hole):
                final = after.with_hole(product.coefficient, coefficient)
            else:
                final = after if close(product.coefficient, coefficient) else None
            if final is not None:
                yield final

    def _factors(
        self,
        whole: tuple[Value, Value],
        wanted: list[Factor],
        open_: list[_Open],
        coefficient: float,
        match: Match,
    ) -> Iterator[tuple[Match, float]]:
        """Assign the program's factors to those of the pattern, splitting factors further where
        needed."""
        if not open_:
            if not wanted:
                yield match, coefficient
            return
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return
        (operand, power, shape), *rest = open_
        number = number_of(operand, self._makers)
        if number is not None:
            if number > 0 or (number < 0 and power.denominator == 1):
                scaled = coefficient * float(number) ** float(power)
                yield from self._factors(whole, wanted, rest, scaled, match)
            return
        tried: list[Operand] = []
        for place, (node, needed) in enumerate(wanted):
            if needed == power and not any(other is node for other in tried):
                tried.append(node)
                others = wanted[:place] + wanted[place + 1 :]
                if same_place(node, operand, shape, whole):
                    for after in self._match(node, operand, match):
                        yield from self._factors(whole, others, rest, coefficient, after)
        parts = self._taken_apart(operand, power, shape) if wanted else []
        if parts:
            yield from self._factors(whole, wanted, parts + rest, coefficient, match)

    def _taken_apart(self, operand: Operand, power: Fraction, shape: Shape | None) -> list[_Open]:
        """The factors of a factor, empty if it does not split."""
        maker = self._makers.get(operand) if isinstance(operand, Value) else None
        if maker is not None and maker.op is reshape:
            inner = next(maker.values())
            if same_but_for_ones(inner.type, maker.results[0].type):
                return [(inner, power, shape or maker.results[0].type.shape)]
        if maker is not None and maker.op is broadcast_to and shape is not None:
            return []
        parts = factors_of((operand, power), self._makers)
        return [(part, n, shape) for part, n in parts or ()]

    def _dot(self, wanted: Instruction, maker: Instruction, match: Match) -> Iterator[Match]:
        """Match a matrix product whose operands may have their axes in another order."""
        if sum_dtypes(wanted) != sum_dtypes(maker):
            return
        sides: list[tuple[Operand, Operand, tuple[int, ...]]] = []
        for side, node, found in zip(("lhs", "rhs"), wanted.operands, maker.operands, strict=True):
            there, here = axes_of(wanted, side), axes_of(maker, side)
            if [len(part) for part in there] != [len(part) for part in here]:
                return
            place = dict(zip(sum(there, ()), sum(here, ()), strict=True))
            sides.append((node, found, tuple(place[i] for i in range(len(place)))))
        for after in self._moved(*sides[0], match):
            yield from self._moved(*sides[1], after)

    def _moved(
        self, node: Operand, found: Operand, perm: tuple[int, ...], match: Match
    ) -> Iterator[Match]:
        """Match ``found``, transposed by ``perm``, with ``node``."""
        assert isinstance(node, Value)
        assert isinstance(found, Value)
        shape = tuple(found.type.shape[i] for i in perm)
        if found.type.with_shape(shape) != node.type:
            return
        straight = tuple(range(len(perm)))
        maker = self._makers.get(found)
        while perm != straight and maker is not None and maker.op is transpose:
            perm = tuple(maker.attrs["perm"][i] for i in perm)
            (found,) = maker.values()
            maker = self._makers.get(found)
        wanted = self._pattern.makers.get(node)
        if perm == straight:
            yield from self._match(node, found, match)
        elif isinstance(node, Param):
            yield from self._param(node, found, ((transpose, perm),), match)
        elif wanted is None:
            return
        elif wanted.op is reshape and isinstance(param := wanted.operands[0], Param):
            moves: tuple[Move, ...] = ((transpose, perm), undone(wanted, param))
            yield from self._param(param, found, moves, match)
        elif wanted.op.elementwise and maker is not None and maker.op is wanted.op:
            yield from self._scaled(wanted, maker, perm, match)

    def _scaled(
        self, wanted: Instruction, maker: Instruction, perm: tuple[int, ...], match: Match
    ) -> Iterator[Match]:
        """Match an operand that is multiplied by a number before its transpose."""
        orders = [maker.operands, maker.operands[::-1]][: 1 + wanted.op.commutative]
        for operands in orders:
            pairs = list(zip(wanted.operands, operands, strict=True))
            tensors = [pair for pair in pairs if isinstance(pair[0], Value)]
            literals = [pair for pair in pairs if not isinstance(pair[0], Value)]
            if len(tensors) == 1 and isinstance(tensors[0][1], Value):
                for after in self._all(literals, match):
                    yield from self._moved(*tensors[0], perm, after)
