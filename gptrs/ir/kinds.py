"""The kinds of ops: how elements of a result depend on elements of the operands.

Passes and backends ask for the kind of an op where any op of the kind will do, and for the op
itself (``instruction.op is reshape``) where they know what one op does.
"""

from __future__ import annotations

from enum import Enum, auto


class OpKind(Enum):
    """How an element of the result of an op depends on elements of its operands."""

    ELEMENTWISE = auto()
    """On the elements at its own place; operands are broadcast to one shape."""
    ACTIVATION = auto()
    """A composite of one operand, on the element at its own place."""
    VIEW = auto()
    """It is an element of the operand, at a place that is affine in its own: strides say where."""
    MOVEMENT = auto()
    """It is an element of an operand, or a number that fills gaps."""
    FILL = auto()
    """On its place alone: there is no operand."""
    REDUCTION = auto()
    """On the elements along ``axes``, combined by an associative operation."""
    CONTRACTION = auto()
    """On sums of products along axes that two operands share."""
    MATRIX = auto()
    """On all elements of the matrix, of a batch in the last two axes, that it belongs to."""
    WINDOW = auto()
    """On a window of neighbours along spatial axes."""
    ROWWISE = auto()
    """On the row along ``axis`` that it is in, and that row alone."""
    NORM = auto()
    """On its own place, and statistics of the row that it is in or of its channel."""
    ORDER = auto()
    """On how the elements along an axis compare."""
    INDEX = auto()
    """It is an element, or a sum of elements, that integer operands point to."""
    QUANTIZATION = auto()
    """On the element at its own place, a scale and a zero point."""
    RANDOM = auto()
    """On a key and its place."""
    CONTROL = auto()
    """On what programs among the attributes compute."""
    EFFECT = auto()
    """On what it does besides: it prints, calls Python or fails. See `Operation.has_effects`."""
    CALL = auto()
    """On what a definition among the attributes says; a kernel of the backend computes it."""
    OTHER = auto()
    """Nothing is known."""
