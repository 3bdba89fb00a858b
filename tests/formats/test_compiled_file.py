"""Files of compiled functions: read in another process, without tracing and compiling; damage."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs import events, ptir, tree
from gptrs.errors import ArgumentError, LoadError, RecompileWarning
from gptrs.formats import compiled_file
from gptrs.formats.safetensors_file import SafetensorsFile
from gptrs.formats.safetensors_writer import write_safetensors
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from tests.support import ROOT

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 64)).astype(np.float32)
WEIGHT = ptir.Parameter(RNG.standard_normal((48, 64)).astype(np.float32), "weight")
ROTATION = ptir.Parameter(np.exp(1j * np.arange(64)).astype(np.complex64), "rotation")
MEAN = ptir.Parameter(np.ones(48, ptir.bf16.numpy), "mean")
TABLE = np.linspace(-1, 1, 64, dtype=np.float32)


def layer(x: Any, key: Any, scale: Any = 2.0, *, mode: str = "a") -> Any:
    """Parameters, one of them transposed; noise; containers and values in the result."""
    y = ptir.softmax((x @ WEIGHT.T + MEAN) * scale)
    return {"y": y + ptir.random.normal(key, (48,)), "more": (mode, [x.shape[0], None])}


def loops(x: Any) -> Any:
    """Control flow with kernels in its parts."""

    def step(state: Any, row: Any) -> Any:
        state = ptir.cond(
            row.sum() > 0, lambda s: ptir.sort(s * 0.5 + row), lambda s: s - row, state
        )
        return state, ptir.cumsum(state, axis=0)

    return ptir.scan(step, x[0] + TABLE, x)


class Saved(NamedTuple):
    function: Any
    lowered_for: tuple[Any, ...]
    args: tuple[Any, ...]


SAVED: dict[str, Saved] = {
    "layer": Saved(
        ptir.jit(layer), (ptir.Type((5, 64), ptir.f32), ptir.random.key(0)), (X, ptir.random.key(3))
    ),
    "loops": Saved(ptir.jit(loops), (X,), (X,)),
    "complex": Saved(ptir.jit(lambda z: ptir.abs(z * ROTATION)), (X,), (X,)),
    "symbolic": Saved(
        ptir.jit(lambda x: (ptir.sort(x, axis=0), x.shape[0] * 2)),
        (ptir.Type.parse("f32[?N,64]"),),
        (X,),
    ),
    "gamma": Saved(
        ptir.jit(lambda key: ptir.random.gamma(key, 2.0, (1000,))),
        (ptir.random.key(0),),
        (ptir.random.key(5),),
    ),
    "reference": Saved(ptir.jit(backend="reference")(lambda x: ptir.exp(x)), (X,), (X,)),
    "precise": Saved(ptir.jit(precise=True)(lambda x: ptir.exp(x).sum(axis=0)), (X,), (X,)),
}

LOADING = """
import json, sys
import numpy as np
from gptrs import events, ptir, tree
from gptrs.debug.lowering import ProgramTraced
from gptrs.ir.tensor import Tensor
from gptrs.kernels.compiler.loaded_object import KernelReady

seen, found = [], {}
for name in sys.argv[2:]:
    path = f"{sys.argv[1]}/{name}"
    given = np.load(path + ".npz")
    with events.listen(seen.append):
        function = ptir.load_compiled(path + ".compiled")
        result = function(*(given[key] for key in sorted(given)))
    leaves, _ = tree.flatten(result, is_leaf=lambda x: isinstance(x, Tensor), label="")
    arrays = [leaf.numpy() for leaf in leaves if isinstance(leaf, Tensor)]
    np.savez(path + ".found.npz", *arrays)
    found[name] = [repr(leaf) for leaf in leaves if not isinstance(leaf, Tensor)]
kernels = [e for e in seen if isinstance(e, KernelReady)]
print(json.dumps({
    "values": found,
    "traced": sum(isinstance(e, ProgramTraced) for e in seen),
    "compiled": [name for e in kernels if not e.cached for name in e.names],
    "loaded": len(kernels),
    "numba": "numba" in sys.modules,
}))
"""


def split(result: Any) -> tuple[list[Array], list[str]]:
    leaves, _ = tree.flatten(result, is_leaf=lambda x: isinstance(x, Tensor), label="")
    arrays = [leaf.numpy() for leaf in leaves if isinstance(leaf, Tensor)]
    return arrays, [repr(leaf) for leaf in leaves if not isinstance(leaf, Tensor)]


def test_another_process_neither_traces_nor_compiles(tmp_path: Path) -> None:
    """With an empty folder for kernels; results have the same bits."""
    expected: dict[str, tuple[list[Array], list[str]]] = {}
    for name, saved in SAVED.items():
        compiled = saved.function.lower(*saved.lowered_for).compile()
        compiled.save(tmp_path / f"{name}.compiled")  # before it has run
        expected[name] = split(compiled(*saved.args))
        np.savez(tmp_path / f"{name}.npz", *map(np.asarray, saved.args))
    environment = {**os.environ, "GPTRS_CACHE_DIR": str(tmp_path / "kernels")}
    command = [sys.executable, "-c", LOADING, str(tmp_path), *SAVED]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["traced"], report["compiled"], report["numba"]) == (0, [], False)
    assert report["loaded"] > 5
    for name, (arrays, values) in expected.items():
        found = np.load(tmp_path / f"{name}.found.npz")
        for array, key in zip(arrays, found, strict=True):
            assert array.dtype == found[key].dtype
            assert array.tobytes() == found[key].tobytes(), name
        assert report["values"][name] == values


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compiled") / "function"
    SAVED["layer"].function.lower(*SAVED["layer"].lowered_for).compile().save(path)
    return path


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite a file with another description, and right checksums."""
    arrays = {name: t.read() for name, t in SafetensorsFile.open(path).tensors.items()}
    about = json.loads(arrays["about"].tobytes())
    change(about)
    text = json.dumps(about).encode()
    arrays["about"] = np.frombuffer(text, np.uint8)
    arrays["checksum"] = np.frombuffer(hashlib.blake2b(text).digest(), np.uint8)
    write_safetensors(path, arrays)


def copied(saved: Path, tmp_path: Path) -> Path:
    path = tmp_path / "copy"
    path.write_bytes(saved.read_bytes())
    return path


def test_a_loaded_function_can_be_used_and_saved_again(saved: Path, tmp_path: Path) -> None:
    function = ptir.load_compiled(saved)
    args = SAVED["layer"].args
    expected = SAVED["layer"].function(*args)
    np.testing.assert_array_equal(function(*args)["y"].numpy(), expected["y"].numpy())
    assert function(*args)["more"] == ("a", [5, None])
    function.save(tmp_path / "again")
    again = ptir.load_compiled(tmp_path / "again")
    np.testing.assert_array_equal(again(*args)["y"].numpy(), expected["y"].numpy())
    assert str(again.program) == str(function.program)
    with pytest.raises(ArgumentError, match="for the value 'a' of argument mode"):
        function(*args, mode="b")


@pytest.mark.parametrize("part", ["cpu", "features", "triple", "compiler"])
def test_kernels_that_do_not_fit_are_compiled_again(saved: Path, tmp_path: Path, part: str) -> None:
    path = copied(saved, tmp_path)
    changed(path, lambda about: about["target"].update({part: "another"}))
    with pytest.warns(RecompileWarning, match="they are compiled again"):
        function = ptir.load_compiled(path)
    args = SAVED["layer"].args
    expected = SAVED["layer"].function(*args)["y"].numpy()
    np.testing.assert_array_equal(function(*args)["y"].numpy(), expected)


def test_damage_is_an_error(saved: Path, tmp_path: Path) -> None:
    """A changed byte anywhere, a missing end, another file, none at all."""
    whole = saved.read_bytes()
    path = tmp_path / "damaged"
    for place in range(8, len(whole), max(1, len(whole) // 150)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(LoadError):
            ptir.load_compiled(path)
    for length in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(LoadError):
            ptir.load_compiled(path)
    write_safetensors(path, {"weight": X})
    with pytest.raises(LoadError, match="holds no compiled function"):
        ptir.load_compiled(path)
    with pytest.raises(LoadError, match="does not exist"):
        ptir.load_compiled(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda about: about.update(version=99), "has version 99 of the format, expected 1"),
        (lambda about: about.pop("leaves"), "'about' is wrong: 'leaves'"),
        (lambda about: about["leaves"].pop(), "'about' is wrong"),
        (lambda about: about["results"].pop(), "'about' is wrong"),
        (lambda about: about.update(arguments=["set", [], []]), "'about' is wrong: 'set'"),
        (lambda about: about.update(overrides={"sofmax": "force=x"}), "'about' is wrong"),
        (lambda about: about["parameters"].pop(), "'about' is wrong: its arguments are not"),
    ],
)
def test_a_wrong_description_is_an_error(
    saved: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    path = copied(saved, tmp_path)
    changed(path, change)
    with pytest.raises(LoadError) as raised:
        ptir.load_compiled(path)
    assert words in str(raised.value)


class Point(NamedTuple):
    x: Any


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        (lambda x: Point(x), (X,), "the result of the function have a Point"),
        (lambda p: p.x, (Point(X),), "the arguments of the function have a Point"),
        (lambda x: (x, 1 + 2j), (X,), "returns a complex"),
        (lambda x, f=print: x, (X, print), "an argument is a builtin_function_or_method"),
        (lambda x: ptir.callback(lambda a: a, x), (X,), "calls the Python function"),
    ],
)
def test_what_a_file_cannot_hold(
    tmp_path: Path, function: Any, args: tuple[Any, ...], words: str
) -> None:
    compiled = ptir.jit(function).lower(*args).compile()
    path = tmp_path / "function"
    with pytest.raises(ArgumentError) as raised:
        compiled.save(path)
    assert words in str(raised.value)
    assert [*tmp_path.iterdir()] == []


def test_events_say_what_was_loaded(saved: Path) -> None:
    seen: list[object] = []
    with events.listen(seen.append):
        ptir.load_compiled(saved)
    (loaded,) = [e for e in seen if isinstance(e, compiled_file.CompiledLoaded)]
    assert loaded.path == saved
    assert loaded.kernels > 3
    assert not loaded.unfit
