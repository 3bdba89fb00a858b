"""Places of values: what the host gives has memory of its own."""

from __future__ import annotations

from typing import Any

from gptrs import ptir
from gptrs.backends.c_family.memory import assign
from gptrs.backends.c_family.schedule import OtherStep, schedule_of
from gptrs.ir.types import Type


def test_what_the_host_gives_is_not_room_for_a_larger_value() -> None:
    """Its buffer has the size of its elements: a larger value would be written beyond it."""

    @ptir.jit
    def function(rows: Any, x: Any) -> Any:
        found: Any = ptir.linalg.svdvals(rows)
        small: Any = ptir.cumsum(found, axis=0)
        wide: Any = ptir.cumsum(small.reshape(1, 4) + x, axis=0)
        return ptir.cumsum(wide, axis=1)

    given = Type.parse("f32[4,4]"), Type.parse("f32[9,4]")
    assignment = assign(schedule_of(function.lower(*given).program))
    hosted = [s.instruction.result for s in assignment.steps if isinstance(s, OtherStep)]
    assert hosted
    for value in hosted:
        place = assignment.places[value]
        assert [v for v, other in assignment.places.items() if other == place] == [value]
