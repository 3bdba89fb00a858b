"""`dataclass`, as the standard library's, with methods that are made when they are first needed.

The standard decorator writes up to six methods for each class and compiles them when the module is
imported: half a millisecond for a class, and a first call imports some sixty of them. Here the
fields are the standard library's (`fields`, `replace`, `asdict` and `match` work as ever), the
constructor is compiled for the first instance, and the other methods are shared by all classes.
What nothing here needs is left out: order, `InitVar`, copies of frozen classes with slots.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, *, frozen=False, eq=True, kw_only=False, slots=False):
        """A class of named fields: `@dataclass` or `@dataclass(frozen=True, ...)`."""

        def made(cls: type) -> type:
            return _with_methods(cls, frozen=frozen, eq=eq, kw_only=kw_only, slots=slots)

        return made if cls is None else made(cls)


def _with_methods(cls: type, *, frozen: bool, eq: bool, kw_only: bool, slots: bool) -> type:
    own = set(vars(cls))
    if "__eq__" in own and cls.__hash__ is None:  # which Python sets beside an `__eq__`
        own.remove("__hash__")
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # the standard decorator would inspect the signature
    fields_only: Callable[[type], type] = dataclasses.dataclass(  # pyright: ignore[reportUnknownVariableType]
        init=False, repr=False, eq=False, kw_only=kw_only, slots=slots
    )
    cls = fields_only(cls)
    methods: dict[str, Any] = {"__init__": _Constructor(cls), "__repr__": _representation}
    if eq:
        methods |= {"__eq__": _equality(cls), "__hash__": _hash(cls) if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
    for name in methods.keys() - own:
        setattr(cls, name, methods[name])
    return cls


class _Constructor:
    """`__init__` of a class until a call or `inspect.signature` asks for it."""

    def __init__(self, owner: type) -> None:
        self._owner = owner

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., None]:
        function = _constructor(self._owner)
        self._owner.__init__ = function
        return function.__get__(instance, owner)


def _constructor(cls: type) -> Callable[..., None]:
    """`__init__` of a class, compiled: it sets each field, then calls `__post_init__`."""
    fields = dataclasses.fields(cls)
    names: dict[str, object] = {"_MISSING": MISSING, "_set": object.__setattr__}
    names["__name__"] = cls.__module__  # tracebacks leave internal frames out by their module
    given = [field for field in fields if field.init]
    positional = [_parameter(field, names) for field in given if not field.kw_only]
    keywords = [_parameter(field, names) for field in given if field.kw_only]
    parameters = ["self", *positional, *(["*"] if keywords else []), *keywords]
    lines = [line for field in fields for line in _assignment(field, names)]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), names)
    function: Any = names["__init__"]
    function.__qualname__, function.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    function.__annotations__ = {field.name: field.type for field in given} | {"return": None}
    return function


def _parameter(field: Field[Any], names: dict[str, object]) -> str:
    """A field as a parameter; its default is a name in the namespace of the constructor."""
    if field.default_factory is not MISSING:
        return f"{field.name}=_MISSING"
    if field.default is MISSING:
        return field.name
    names[f"_default_{field.name}"] = field.default
    return f"{field.name}=_default_{field.name}"


def _assignment(field: Field[Any], names: dict[str, object]) -> list[str]:
    """What sets a field; none if `__post_init__` has to."""
    value = field.name
    if field.default_factory is not MISSING:
        names[f"_make_{field.name}"] = field.default_factory
        made = f"_make_{field.name}()"
        value = f"{made} if {field.name} is _MISSING else {field.name}" if field.init else made
    elif not field.init:
        if field.default is MISSING:
            return []
        names[value := f"_default_{field.name}"] = field.default
    return [f"_set(self, {field.name!r}, {value})"]


def _values(cls: type, kept: Callable[[Field[Any]], object]) -> Callable[[Any], object]:
    """A function from an instance to its chosen fields' values."""
    names = [field.name for field in dataclasses.fields(cls) if kept(field)]
    return attrgetter(*names) if names else lambda _: ()


def _equality(cls: type) -> Callable[[Any, Any], Any]:
    values = _values(cls, lambda field: field.compare)

    def equal(self: object, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return equal


def _hash(cls: type) -> Callable[[Any], int]:
    values = _values(cls, lambda field: field.compare if field.hash is None else field.hash)
    return lambda self: hash(values(self))


def _representation(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _refuse_assignment(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
