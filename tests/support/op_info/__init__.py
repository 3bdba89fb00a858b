"""torch's own samples of operators (`op_db`, OpInfo), and what they are called here.

A row (`row.Row`) names an OpInfo, says how a sample of it is called with our ops or functions, and
how closely results must agree with torch's. `NotOursError` says which samples have no counterpart.
"""

from __future__ import annotations

from tests.support.op_info import (
    creation,
    direct,
    elementwise,
    functional,
    linear,
    moving,
    named,
    reducing,
    statistics,
)
from tests.support.op_info.excluded import EXCLUDED
from tests.support.op_info.row import NotOursError, Row

__all__ = ["EXCLUDED", "ROWS", "NotOursError", "Row"]

ROWS: tuple[Row, ...] = (
    *direct.ROWS,
    *elementwise.ROWS,
    *reducing.ROWS,
    *moving.ROWS,
    *functional.ROWS,
    *named.ROWS,
    *creation.ROWS,
    *statistics.ROWS,
    *linear.ROWS,
)
