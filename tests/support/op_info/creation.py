"""Creation: ranges, filled tensors, windows, conversions to other dtypes."""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs import ptir
from tests.support.op_info.row import NAMED, F, Row, unless

ANY = ("f32", "f64", "si64", "ui8", "i1")
NUMBERS = ("f32", "f64", "si64", "ui8")
_PLACES = ("device", "layout", "requires_grad", "pin_memory", "memory_format")
_CASTS = {
    "bool": "i1",
    "byte": "ui8",
    "char": "si8",
    "short": "si16",
    "int": "si32",
    "long": "si64",
    "half": "f16",
    "float": "f32",
    "double": "f64",
    "cfloat": "cf32",
    "cdouble": "cf64",
}


def _without_places(call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` without torch's keywords that say where a tensor lies."""
    return lambda *args, **kwargs: call(
        *args, **{name: value for name, value in kwargs.items() if name not in _PLACES}
    )


def _function(name: str) -> Callable[..., Any]:
    return _without_places(lambda *args, **kwargs: getattr(ptir, name)(*args, **kwargs))


def _method(name: str) -> Callable[..., Any]:
    return _without_places(lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs))


def _cast(name: str) -> Callable[..., Any]:
    def call(x: Any, **kwargs: Any) -> Any:
        return getattr(x, name)()

    return _without_places(call)


def _window(name: str) -> Callable[..., Any]:
    def call(count: int, *args: Any, sym: bool = True, dtype: Any = None, **kwargs: Any) -> Any:
        window = getattr(ptir.signal.windows, name)
        return window(count, *args, sym=sym, dtype=dtype, **kwargs)

    return _without_places(call)


def _indices(name: str) -> Callable[..., Any]:
    def call(rows: int, columns: int, offset: int = 0, dtype: Any = "si64") -> Any:
        return ptir.stack(getattr(ptir, name)(rows, offset, columns)).astype(dtype or "si64")

    return _without_places(call)


def _powers(
    start: Any, end: Any, steps: int, base: float = 10.0, dtype: Any = None, **_: Any
) -> Any:
    return ptir.logspace(start, end, steps, base=base, dtype=dtype)


def _to(x: Any, *args: Any, **kwargs: Any) -> Any:
    kinds = [each for each in (*args, kwargs.get("dtype")) if isinstance(each, str | ptir.Tensor)]
    kinds = [each for each in kinds if isinstance(each, ptir.Tensor) or each in ANY]
    unless(not kinds, "a device alone")
    kind = kinds[0]
    return x.astype(kind.dtype if isinstance(kind, ptir.Tensor) else kind)


def _eye(n: int, m: int | None = None, **kwargs: Any) -> Any:
    return ptir.eye(n, m, dtype=kwargs.get("dtype", "f32"))


ROWS: tuple[Row, ...] = (
    Row("arange", _function("arange"), F),
    Row("linspace", _function("linspace"), F, **NAMED),
    Row("linspace.tensor_overload", _function("linspace"), ("f64",), **NAMED),
    Row("logspace", _powers, F, **NAMED),
    Row("logspace.tensor_overload", _powers, ("f64",), **NAMED),
    *(Row(name, _function(name), ANY) for name in ("full", "full_like")),
    *(Row(name, _method(name), ANY) for name in ("new_zeros", "new_ones", "new_full")),
    Row("eye", _without_places(_eye), ANY, compiled=0),
    *(Row(name, _cast(name), NUMBERS, special=False, differs="x87's NaN") for name in _CASTS),
    Row("to", _to, F),
    *(
        Row(f"signal.windows.{name}", _window(name), F, compiled=0, **NAMED)
        for name in [
            "bartlett",
            "blackman",
            "cosine",
            "exponential",
            "gaussian",
            "general_cosine",
            "general_hamming",
            "hamming",
            "hann",
            "kaiser",
            "nuttall",
        ]
    ),
    *(
        Row(name, _indices(name), ("si64",), compiled=0)
        for name in ("tril_indices", "triu_indices")
    ),
)
