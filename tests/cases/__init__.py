"""The table: at least one row per op. `tests.cases.sample` says what a row is."""

from tests.cases.composite import COMPOSITE
from tests.cases.control import CONTROL
from tests.cases.elementwise import ELEMENTWISE
from tests.cases.language import LANGUAGE
from tests.cases.moving import MOVING
from tests.cases.quantizing import QUANTIZING
from tests.cases.random import RANDOM
from tests.cases.reducing import REDUCING
from tests.cases.sample import Case
from tests.cases.sorting import SORTING
from tests.cases.vision import VISION
from tests.cases.windows import WINDOWS

CASES: tuple[Case, ...] = (
    *ELEMENTWISE,
    *MOVING,
    *REDUCING,
    *COMPOSITE,
    *WINDOWS,
    *VISION,
    *LANGUAGE,
    *SORTING,
    *RANDOM,
    *QUANTIZING,
    *CONTROL,
)

__all__ = ["CASES"]
