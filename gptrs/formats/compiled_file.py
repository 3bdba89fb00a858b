"""Files of compiled functions: a safetensors file with the program, what it captured, and kernels.

    "about"        U8    JSON: version, form of the calls, options, parameters, target, checksums
    "program"      U8    the traced program as text
    "parameter N"        the elements of the N-th captured parameter, or their bytes
    "kernel KEY"   U8    object code under its cache key (`gptrs.kernels.compiler.cache_key`)
    "checksum"     U8    BLAKE2b of "about", which has those of all others

The passes and the plan run anew where the file is read, milliseconds that make it independent of
how plans look. Their kernels are found by key; where the CPU or the compiler is another one, keys
differ, kernels are compiled from the program, and a `RecompileWarning` says why. Nothing of a file
is run as Python. Kernels are run as they are, so a file is to be trusted as a program is.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from gptrs import events, tree
from gptrs.errors import ArgumentError, LoadError, ParseError, PtirError, RecompileWarning, warn
from gptrs.formats.call_form_json import form_in, form_out
from gptrs.formats.safetensors_file import DTYPES, SafetensorsFile
from gptrs.formats.safetensors_writer import write_safetensors
from gptrs.formats.tensor_writer import NewTensor
from gptrs.ir.host_functions import HostFunction
from gptrs.ir.parameter import Parameter
from gptrs.ir.parsing import parse
from gptrs.ir.program import Program
from gptrs.ir.types import Array, Type
from gptrs.jit.ahead_of_time import Compiled, compiled_of
from gptrs.jit.call_form import CallForm
from gptrs.jit.options import Options
from gptrs.jit.overrides import Force, Overrides
from gptrs.jit.overrides import parse as parse_policies
from gptrs.jit.trace import Result, Traced
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.cache_key import compiler_version
from gptrs.kernels.compiler.loaded_object import supply
from gptrs.lazy_dataclass import dataclass

VERSION = 1
_ABOUT, _PROGRAM, _CHECKSUM, _KERNEL = "about", "program", "checksum", "kernel "
_AGAIN = "save the function again"
_STORED = frozenset(DTYPES.values())


@dataclass(frozen=True)
class CompiledLoaded:
    """Event: a compiled function was read from a file, in ``seconds``."""

    path: Path
    kernels: int
    """Kernels that the file has for this machine."""
    seconds: float
    unfit: str
    """Why its kernels do not fit this machine; empty where they do."""


def write(compiled: Compiled, path: Path) -> None:
    """`Compiled.save`."""
    program = _text_of(compiled.program)
    tensors: dict[str, Any] = {_PROGRAM: _bytes(program.encode())}
    for number, parameter in enumerate(compiled.parameters):
        tensors[f"parameter {number}"] = _storable(parameter)
    for key, data in compiled.objects().items():
        tensors[f"{_KERNEL}{key}"] = _bytes(data)
    given = [NewTensor.of(name, value) for name, value in tensors.items()]
    about = {
        "version": VERSION,
        **form_out(compiled.form),
        "backend": compiled.backend.name,
        "precise": compiled.options.is_precise,
        "overrides": _policies(compiled.overrides),
        "parameters": [[p.name, str(p.type)] for p in compiled.parameters],
        "target": _target(),
        "checksums": {tensor.name: _checksum(tensor.pieces()) for tensor in given},
    }
    text = json.dumps(about).encode()
    given.append(NewTensor.of(_ABOUT, _bytes(text)))
    given.append(NewTensor.of(_CHECKSUM, _bytes(hashlib.blake2b(text).digest())))
    write_safetensors(path, given)


def load(path: Any) -> Compiled:
    """`ptir.load_compiled`."""
    start, place = time.perf_counter(), Path(path)
    file = SafetensorsFile.open(place)
    arrays = {name: _read(place, file, name) for name in file.tensors}
    about = _about(place, arrays)
    try:
        form, traced, options, overrides = _content(about, arrays)
    except (KeyError, TypeError, ValueError, PtirError) as error:
        if isinstance(error, ParseError):
            raise LoadError(f"{place}: its program cannot be read: {error}", fix=_AGAIN) from None
        raise LoadError(f"{place}: {_ABOUT!r} is wrong: {error}", fix=_AGAIN) from None
    unfit = _unfit(about["target"])
    kernels: dict[str, bytes] = {}
    if unfit:
        warn(
            f"{place} holds kernels {unfit}: they are compiled again. Fix: {_AGAIN}.",
            RecompileWarning,
        )
    else:
        kernels = {
            n.removeprefix("kernel "): a.tobytes()
            for n, a in arrays.items()
            if n.startswith("kernel ")
        }
        supply(kernels)
    compiled = compiled_of(form, traced, options, overrides)
    events.emit(CompiledLoaded(place, len(kernels), time.perf_counter() - start, unfit))
    return compiled


def _bytes(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)


def _storable(parameter: Parameter) -> Any:
    """A parameter, or its bytes where the format does not have its dtype."""
    if parameter.dtype in _STORED:
        return parameter
    return np.ascontiguousarray(parameter.numpy()).reshape(-1).view(np.uint8)


def _checksum(pieces: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _text_of(program: Program) -> str:
    """The text of a program. Raises `ArgumentError` for what another process cannot read."""
    for function in _host_functions(program):
        raise ArgumentError(
            f"the program calls the Python function {function.label}, which a file cannot hold",
            fix="leave out ptir.callback",
        )
    text = str(program)
    try:
        parse(text)
    except ParseError as error:
        raise ArgumentError(f"the program cannot be written to a file: {error}") from None
    return text


def _host_functions(program: Program) -> Iterator[HostFunction]:
    for instruction in program.body:
        yield from (a for a in instruction.attrs.values() if isinstance(a, HostFunction))
        for region in instruction.regions():
            yield from _host_functions(region)


def _policies(overrides: Overrides) -> dict[str, str]:
    timed = [name for name, policy in overrides.policies.items() if not isinstance(policy, Force)]
    if timed:
        raise ArgumentError(
            f"the implementation of {timed[0]} is chosen by time, which a file cannot hold",
            fix='name it: {"' + timed[0] + '": "force=..."}',
        )
    return {name: str(policy) for name, policy in overrides.policies.items()}


def _target() -> dict[str, str]:
    target = isa.target(isa.current())
    return {
        "triple": target.triple,
        "cpu": target.cpu,
        "features": target.features,
        "compiler": compiler_version(),
    }


def _unfit(target: Mapping[str, str]) -> str:
    """Why kernels for ``target`` do not fit this process; empty where they do."""
    own = _target()
    words = {
        "triple": "for another system ({})",
        "cpu": "for another CPU ({})",
        "features": "for a CPU with other instructions",
        "compiler": "of another version of gptrs, LLVM or Numba",
    }
    for name, text in words.items():
        if target[name] != own[name]:
            return text.format(target[name])
    return ""


def _read(path: Path, file: SafetensorsFile, name: str) -> Array:
    try:
        return file.tensors[name].read()
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error}", fix=_AGAIN) from None


def _about(path: Path, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """The checked description of the file, after which all of it is as it was written."""
    if not {_ABOUT, _PROGRAM, _CHECKSUM} <= arrays.keys():
        raise LoadError(
            f"{path} holds no compiled function", fix="give a file that Compiled.save wrote"
        )
    text = arrays[_ABOUT].tobytes()
    if hashlib.blake2b(text).digest() != arrays[_CHECKSUM].tobytes():
        raise LoadError(f"{path} is damaged: the checksum of {_ABOUT!r} differs", fix=_AGAIN)
    about = cast("dict[str, Any]", json.loads(text))
    if about.get("version") != VERSION:
        raise LoadError(
            f"{path} has version {about.get('version')} of the format, expected {VERSION}",
            fix=_AGAIN,
        )
    checksums = about.get("checksums", {})
    for name, array in arrays.items():
        if name not in (_ABOUT, _CHECKSUM) and checksums.get(name) != _checksum((array,)):
            raise LoadError(f"{path} is damaged: the checksum of {name!r} differs", fix=_AGAIN)
    if missing := sorted(checksums.keys() - arrays.keys()):
        raise LoadError(f"{path} is damaged: {missing[0]!r} is missing", fix=_AGAIN)
    return about


def _content(
    about: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[CallForm, Traced, Options, Overrides]:
    program = parse(arrays[_PROGRAM].tobytes().decode())
    parameters = [
        Parameter(_elements(arrays[f"parameter {number}"], Type.parse(type)), name)
        for number, (name, type) in enumerate(about["parameters"])
    ]
    form = form_in(about)
    expected = [*(w.type for w in form.wanted), *(p.type for p in parameters)]
    if [param.type for param in program.params] != expected or len(form.leaves) != sum(
        1 for _ in tree.paths(form.structure)
    ):
        raise ValueError("its arguments are not those of the program")
    given = {result.index for result in form.results if isinstance(result, Result)}
    if given != set(range(len(program.results))) or len(form.results) != sum(
        1 for _ in tree.paths(form.result_structure)
    ):
        raise ValueError("its results are not those of the program")
    traced = Traced(program, tuple(parameters), form.result_structure, form.results, ())
    options = Options(form.static, form.donated, backend=about["backend"], precise=about["precise"])
    policies = parse_policies(about["overrides"], "a compiled function", LoadError)
    key = "; ".join(f"{name}: {policy}" for name, policy in policies)
    return form, traced, options, Overrides(dict(policies), key or "none")


def _elements(stored: Array, type: Type) -> Array:
    shape = cast("tuple[int, ...]", type.shape)
    return stored.reshape(-1).view(type.dtype.numpy).reshape(shape)
