"""Reproducers: a failing program as a Python file that runs it again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

from gptrs.backends.discovery import get_backend
from gptrs.ir.interpreters import program_of
from gptrs.ir.program import Program
from gptrs.ir.types import Array, Type
from tests.fuzz.compare import Comparison, Mismatch
from tests.fuzz.programs import Example


def text_of(example: Example, mismatch: object, origin: str, backend: str = "faer") -> str:
    """Python that runs ``example`` again: the program, then its inputs. ``origin`` says how it was
    found."""
    told = "".join(f"# {line}\n" for line in str(mismatch).splitlines())
    name = _name(str(example.program))
    inputs = "".join(f"        {_array_text(array)},\n" for array in example.inputs)
    return (
        f"{example.program}\n\n# Not part of the program: it gives something else, in\n{told}"
        f"# It was found by {origin}.\n\n"
        "from tests.fuzz.replay import replay\n\n"
        'if __name__ == "__main__":\n'
        f"    inputs = (\n{inputs}    )\n"
        f"    replay({name}, inputs, {json.dumps(dict(example.sizes))}, {example.turn},"
        f' "{backend}")\n'
    )


def _name(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("def "))[4:].split("(")[0]


def _array_text(array: Array) -> str:
    """The array as programs print it: a constant has the text."""
    from gptrs.ir.dispatch import OPS, interpreter
    from gptrs.ir.interpreters import Recorder

    recorder = Recorder("f")
    with interpreter(recorder):
        constant = OPS["constant"](value=array)
    text = str(recorder.finish([constant]))
    return text.split("value=")[1].split(")  #")[0]


def example_of(
    function: FunctionType, inputs: Sequence[Array], sizes: Mapping[str, int], turn: int
) -> Example:
    """The example that `text_of` wrote."""
    program: Program = program_of(function)
    shaped = [
        array.reshape(_shape(p.type, sizes))
        for p, array in zip(program.params, inputs, strict=True)
    ]
    return Example(program, sizes, tuple(shaped), turn)


def _shape(type: Type, sizes: Mapping[str, int]) -> tuple[int, ...]:
    from gptrs.ir.dims import size_at

    return tuple(size_at(n, sizes) for n in type.shape)


def replay(
    function: Any,
    inputs: Sequence[Array],
    sizes: Mapping[str, int],
    turn: int,
    backend: str = "faer",
) -> Mismatch | None:
    """Run the program in all ways again, and print what is found."""
    comparison = Comparison(backend=get_backend(backend))
    found = comparison.mismatch(example_of(function, inputs, sizes, turn))
    print("all ways agree" if found is None else found)
    return found
