"""The table: at least one row per op. `tests.cases.sample` says what a row is."""

from tests.cases.composite import COMPOSITE
from tests.cases.elementwise import ELEMENTWISE
from tests.cases.moving import MOVING
from tests.cases.reducing import REDUCING
from tests.cases.sample import Case

CASES: tuple[Case, ...] = (*ELEMENTWISE, *MOVING, *REDUCING, *COMPOSITE)

__all__ = ["CASES"]
