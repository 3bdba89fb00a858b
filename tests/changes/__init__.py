"""The table of mutations of captured state. `tests.changes.case` describes a row."""

from tests.changes.case import Changes
from tests.changes.functions import FUNCTIONS
from tests.changes.layers import LAYERS
from tests.changes.objects import OBJECTS
from tests.changes.values import VALUES

MUTATIONS: Changes = {**OBJECTS, **FUNCTIONS, **VALUES, **LAYERS}

__all__ = ["MUTATIONS"]
