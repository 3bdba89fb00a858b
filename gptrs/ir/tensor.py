"""`Tensor`: the array handle of users, or the stand-in for a traced value.

A Tensor holds a NumPy array, elements in the memory of a device (`DeviceArray`), or a `Value` of
the program being traced. Its operators are in `gptrs.ir.operators`, its methods in
`gptrs.ir.methods` and `tensor_methods`, its array protocols in `gptrs.ir.numpy_calls`. A model's
weight is a `gptrs.ir.parameter.Parameter`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from gptrs.errors import ArgumentError, DonatedError, DTypeError, TraceError, shown
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.dims import Dim, DimLike, Shape
from gptrs.ir.dispatch import current, is_recording
from gptrs.ir.in_place import Writable
from gptrs.ir.names import unknown_name
from gptrs.ir.numpy_calls import NumPyOperand, array_namespace
from gptrs.ir.program import Value
from gptrs.ir.tensor_html import tensor_html
from gptrs.ir.tensor_methods import Conversions, TensorMethods
from gptrs.ir.traced import described, leak, located
from gptrs.ir.types import Array, DType, Type, as_dtype
from gptrs.locks import late_import


class Tensor(NumPyOperand, Writable, Conversions["Tensor"], TensorMethods["Tensor"]):
    """An array, or, inside a traced function, a value not yet computed.

    Its elements are immutable: ``x[key] = v`` gives the object new ones (`gptrs.ir.in_place`).

    ``Tensor(data)`` takes NumPy arrays, torch CPU tensors and anything with ``__dlpack__`` or
    ``__array__`` without a copy, and nested lists of numbers.
    """

    __slots__ = ("__weakref__", "_array", "_donated_to", "_type", "recorder", "value", "weak")

    def __init__(self, data: object, dtype: object = None) -> None:
        array = as_array(data)
        if array is None:
            array = _from_lists(data)
        if dtype is not None and array.dtype != (wanted := as_dtype(dtype).numpy):
            array = array.astype(wanted)
        self._set(Type.of(array), array=array, recorder=current())

    def _set(
        self,
        type: Type,
        *,
        array: Array | DeviceArray | None = None,
        value: Value | None = None,
        recorder: object = None,
        weak: bool = False,
    ) -> None:
        self._type = type
        self._array = array
        self._donated_to = ""
        self.value = value
        self.recorder = recorder
        self.weak = weak  # made of a Python scalar: takes the dtype of the other operand

    @classmethod
    def of_value(cls, value: Value, recorder: object = None, *, weak: bool = False) -> Tensor:
        """The tensor that stands for ``value`` in the program that ``recorder`` traces."""
        made = cls.__new__(cls)
        made._set(value.type, value=value, recorder=recorder, weak=weak)
        return made

    @classmethod
    def of_array(
        cls, array: Array | DeviceArray, type: Type | None = None, *, weak: bool = False
    ) -> Tensor:
        """The tensor that holds ``array``, which must not change afterwards."""
        made = cls.__new__(cls)  # once for each result of each call, so spelled out
        made._type = type or (array.type if isinstance(array, DeviceArray) else Type.of(array))
        made._array = array
        made._donated_to = ""
        made.value = None
        made.recorder = None
        made.weak = weak
        return made

    @property
    def type(self) -> Type:
        return self._type

    @property
    def shape(self) -> Shape:
        return self._type.shape

    @property
    def dtype(self) -> DType:
        return self._type.dtype

    @property
    def ndim(self) -> int:
        return len(self._type.shape)

    @property
    def size(self) -> DimLike:
        return self._type.size

    @property
    def device(self) -> str:
        """Where the elements are: "cpu", or the name of the backend that has them on its device."""
        return self._array.device if isinstance(self._array, DeviceArray) else "cpu"

    def to_device(self, device: object, /, *, stream: None = None) -> Tensor:
        """A Tensor of the same elements on ``device``: "cpu", or the name of a backend with a
        device, such as "cuda"; this Tensor where they are there. Raises `ArgumentError` for a
        device that cannot be had."""
        if stream is not None:
            raise ArgumentError(f"stream is {stream!r}, there are no streams", fix="leave it out")
        if (name := str(device)) == self.device:
            return self
        if name == "cpu":
            return Tensor.of_array(self.numpy(), self._type, weak=self.weak)
        placed = late_import("gptrs.backends.selection").placed(self.held(), name)
        return Tensor.of_array(placed, self._type, weak=self.weak)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module ``ptir``, an array namespace of the Python array API standard."""
        return array_namespace(api_version)

    @property
    def is_traced(self) -> bool:
        return self.value is not None

    @property
    def is_parameter(self) -> bool:
        return False

    def copy(self) -> Tensor:
        """Another Tensor of the same elements: writing into one leaves the other as it is."""
        made = Tensor.__new__(Tensor)
        array = None if self.is_traced else self.held()
        recorder = self.recorder if self.is_traced else current()
        made._set(self._type, array=array, value=self.value, recorder=recorder, weak=self.weak)
        return made

    def take_value(self, new: Tensor) -> None:
        """Become ``new``, which has the same type."""
        if not new.is_traced:
            new.held()  # raises for a donated one
        self._array, self.value, self.recorder = new._array, new.value, new.recorder

    def numpy(self) -> Array:
        """The elements as a NumPy array, without a copy where they are on the host.

        Raises `TraceError` inside a traced function and `DonatedError` after donation.
        """
        array = self.held()
        return array.numpy() if isinstance(array, DeviceArray) else array

    def held(self) -> Array | DeviceArray:
        """The elements where they are, on the host or on a device. Raises as `numpy` does."""
        if (array := self._array) is not None:  # read once: another thread may donate it
            return array
        if self._donated_to:
            error = DonatedError(
                f"this Tensor ({self._type}) was donated to {self._donated_to}",
                fix="use the value that the function returned in its place, or do not donate it",
            )
            raise located(error)
        return self.unknown("the elements")

    def donate(self, to: str) -> None:
        """Give the elements away: any later use of this handle is a `DonatedError`."""
        if self._array is None:
            self.held()  # says why there is nothing to give
        self._array, self._donated_to = None, to

    @property
    def donated(self) -> bool:
        return bool(self._donated_to)

    def unknown(self, what: str, fix: str = "") -> NoReturn:
        """Raise the error for what depends on the elements of this traced value."""
        if self.recorder is not None and not is_recording(self.recorder):
            raise located(leak(self))
        error = TraceError(
            f"{what} of a traced value ({described(self)}) cannot be known while tracing",
            fix=fix or "compute with it, or debug with GPTRS_EAGER=1, where values are real",
        )
        raise located(error)

    def item(self) -> bool | int | float | complex:
        """The only element as a Python scalar."""
        return self.numpy().item()

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        return self.numpy().tolist()

    if not TYPE_CHECKING:  # checkers would take any name for an attribute

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_name("Tensor", name)

    def __bool__(self) -> bool:
        if self.is_traced:
            self.unknown(
                "the truth",
                "use ptir.select(condition, a, b) or ptir.cond instead of `if`, ptir.while_loop"
                " instead of `while`, or make the argument static with static_argnames",
            )
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self._scalar("the integer"))

    def __index__(self) -> int:
        scalar = self._scalar("the integer")
        if not isinstance(scalar, int):
            raise TypeError(
                f"only integer Tensors can be used as an index, this one is {self.type}"
            )
        return scalar

    def __complex__(self) -> complex:
        return complex(self._scalar("the number"))

    def __float__(self) -> float:
        return float(self._scalar("the number"))

    def _scalar(self, what: str) -> Any:
        if self.is_traced:
            self.unknown(what, "make the argument static with static_argnames")
        return self.numpy().item()

    def __len__(self) -> int:
        if not self.shape:
            raise located(TraceError(f"a Tensor of rank 0 has no length ({described(self)})"))
        if isinstance(self.shape[0], Dim):
            return int(self.shape[0])
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        """The rows; in a traced function the loop is unrolled."""
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if self.is_traced or self._array is None:
            return f"Tensor({self.type}, {self._state()})"
        body = np.array2string(self.numpy(), separator=", ", prefix="Tensor(", threshold=200)
        return f"Tensor({body}, {self.type})"

    def _repr_html_(self) -> str:
        """Type, statistics and first elements for notebooks; nothing is loaded or traced for it."""
        array = None if self._array is None else self.numpy()
        return tensor_html(self.type, array, self._state())

    def _state(self) -> str:
        """Why the elements are not there."""
        return "donated" if self.donated else "traced"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)


def as_array(value: object) -> Array | None:
    """``value`` as a NumPy array without a copy, or None when it is no array.

    Raises `DTypeError` for elements that are not numbers, `ArgumentError` for other devices.
    """
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, type):
        return None  # its instances may be arrays, it is none
    array: Array
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(cast("Any", value))
    elif type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        array = _from_torch(value)
    elif hasattr(value, "__dlpack__"):
        array = np.from_dlpack(cast("Any", value))
    elif hasattr(value, "__array__"):
        array = np.asarray(value)
    else:
        return None
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    as_dtype(array.dtype)
    return array


def _from_torch(tensor: Any) -> Array:
    if tensor.device.type != "cpu":
        raise ArgumentError(
            f"a torch tensor on {tensor.device}: expected one on the CPU", fix="x.cpu()"
        )
    torch = sys.modules["torch"]
    dtype = as_dtype(tensor.dtype)
    plain = tensor.detach()
    if dtype.is_float and dtype.bits <= 16 and dtype.name != "f16":
        # NumPy cannot take these from torch; the same bits as integers it can.
        plain = plain.view(torch.uint8 if dtype.bits == 8 else torch.int16)
    return cast("Array", plain.numpy()).view(dtype.numpy)


def _from_lists(data: object) -> Array:
    try:
        array = np.asarray(data)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{shown(data)} is no array: {error}") from None
    if array.dtype.kind not in "biufc":
        raise DTypeError(f"elements of type {array.dtype} are no numbers")
    return array.astype(np.float32) if array.dtype == np.float64 else array
