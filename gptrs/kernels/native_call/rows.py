"""Rows of checks: the instruction format of a native call's match, one comparison or load a row.

    row, int64 [6]:  | op | source | target | a | b | c |

Source and target are registers that hold objects. Rows run in order, and the first that does not
hold ends the call's match. Register 0 is the tuple of positional arguments, register 1 the
dictionary of the others.
"""

from __future__ import annotations

from enum import IntEnum, auto

ROW = 6
POSITIONAL, BY_NAME = 0, 1


class Op(IntEnum):
    """The operations of rows. R[s], R[t] are the registers, all else are words."""

    END = 0
    """All checks hold."""
    CONST = auto()
    """R[t] = a."""
    SAME = auto()
    """R[s] is a."""
    LOAD = auto()
    """R[t] = the word at R[s] + a, which is not null."""
    WORD = auto()
    """The word at R[s] + a is b."""
    EQUAL = auto()
    """R[s] is a, or is of its type, a built-in one, and equals it."""
    UNPACK = auto()
    """R[t], R[t + 1], ... = the a items of R[s]: a list if c, else a tuple."""
    ITEMS = auto()
    """The a items of R[s] are those at b: of a list if c, else of a tuple."""
    DICT = auto()
    """R[t], R[t + 1], ... = the a values of the dictionary R[s], of the type c, whose keys equal
    those at b."""
    ENTRIES = auto()
    """The a keys and values of the dictionary R[s] are those at b, in pairs; value 0 is any."""
    ITEM = auto()
    """R[t] = the dictionary R[s] at key a; null if it is not there, an error unless b."""
    UNCHANGED = auto()
    """The rows behind, b of them, are left out if the dictionary R[s] has the version at a."""
    REMEMBER = auto()
    """The word at a = the version of the dictionary R[s]."""
    ATTRIBUTES = auto()
    """R[t] = R[s].__dict__."""
    CONTEXT = auto()
    """R[t] = the value of the context variable a."""
    CALL = auto()
    """R[t] = what the C function a returns for R[s], or null."""
    ARRAY = auto()
    """Arrays t, t + 1, ... = the a registers from R[s] on: ndarrays of the type, the dtype, the
    rank and the extents at b."""
    FLAGS = auto()
    """R[s] has the flags a of NumPy."""
    ELEMENTS = auto()
    """The a bytes of the elements of R[s] are those at b."""
    FLOAT = auto()
    """Array t = the number R[s], in f64."""
    INT = auto()
    """Array t = the number R[s], in si64."""
    COMPLEX = auto()
    """Array t = the number R[s], in cf64."""
    AT_MOST = auto()
    """a is at most the word at b."""
    BEFORE = auto()
    """The monotonic clock has not reached the f64 at a."""
