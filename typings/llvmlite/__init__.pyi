# llvmlite and Numba have no types. With these stubs their values are Any, and not unknown, so that
# kernel builders need no checks switched off.
from typing import Any

def __getattr__(name: str) -> Any: ...
