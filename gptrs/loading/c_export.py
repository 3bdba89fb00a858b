"""Language models as C: a directory of `gptrs.formats.c_files` with a program that continues text.

The model is traced for one row of tokens, whose number is a symbol, and a KV cache of fixed
capacity. The cache is donated, so that the C function updates it in place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gptrs import ptir, tree
from gptrs.backends.c_family.c11 import CProgram, c_name, main_template
from gptrs.errors import ArgumentError
from gptrs.formats.c_files import CFiles, program_in_c, write_c
from gptrs.ir.program import Param
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type
from gptrs.loading.language_model import LanguageModel

_MOST_WRITTEN = 64  # elements of an array that main.c spells out; others begin with zeros


def export_c(
    model: LanguageModel,
    directory: str | Path,
    *,
    name: str | None = None,
    context: int | None = None,
    force: bool = False,
) -> CFiles:
    """Write a language model as C: see `gptrs.formats.c_files`.

    ``context`` is how many tokens a text may have, the model's context length unless given.
    ``name`` is what the files and functions are called, by default the kind of the model. Raises
    `ArgumentError` naming the ops that have no C form.
    """
    if not isinstance(model, LanguageModel):
        raise ArgumentError(
            f"the model is a {type(model).__name__}, expected a language model of gptrs.load",
            fix="write a jitted function as C: f.lower(...).write_c(directory)",
        )
    most = model.module.context_length
    capacity = most if context is None else context
    if not 1 <= capacity <= most:
        raise ArgumentError(f"context is {capacity}, expected 1 to {most} tokens")
    name = c_name(name or model.kind)
    module = model.module
    cache = model.generator.init_cache(np.zeros(1, np.int32), capacity)

    def step(tokens: Tensor, cache: Any) -> Any:
        logits, now = module(tokens, cache, logits="last")
        return ptir.cast(logits, dtype=ptir.f32), now

    function = ptir.jit(step, name=name, donate="cache")
    lowered = function.lower(Type.parse("si64[1,?S]"), cache)
    made = program_in_c(name, lowered.program)
    leaves, _ = tree.flatten(cache, is_leaf=lambda x: isinstance(x, Tensor), label="the cache")
    arrays = [leaf.numpy() for leaf in leaves if isinstance(leaf, Tensor)]
    main = _main(made, arrays, model, capacity)
    return write_c(Path(directory), made, lowered.parameters, main=main, force=force)


def _main(made: CProgram, arrays: list[Array], model: LanguageModel, capacity: int) -> str:
    """The text of ``main.c``."""
    program = made.assignment.schedule.program
    inputs = [param for _, param in made.inputs]
    kept = list(zip(inputs[1:], arrays, strict=True))
    results = dict(zip(inputs[1:], range(1, len(program.results)), strict=True))
    outputs = dict(made.outputs)
    arguments = ["&new", "weights", "arena", "next", *(f"in_{c_name(p.name)}" for p, _ in kept)]
    copies: list[str] = []
    made_here: list[str] = []
    for number in outputs:
        arguments.append("logits" if number == 0 else f"out_{number}")
    for param, array in kept:
        number, name = results[param], f"in_{c_name(param.name)}"
        if number in outputs:
            copies.append(f"    memcpy({name}, out_{number}, {array.nbytes});")
            made_here.append(f"  void *out_{number} = allocate({array.nbytes});")
    declared: list[str] = []
    for param, array in kept:
        lines = _array(param, array)
        declared.append(lines[0])
        made_here += lines[1:]
    ends = sorted(model.end_tokens)
    texts = {
        "NAME": made.name,
        "UPPER": made.name.upper(),
        "VOCABULARY": str(model.module.vocab_size),
        "CONTEXT": str(model.module.context_length),
        "CAPACITY": str(capacity),
        "ENDS": "".join(f"{end}, " for end in ends),
        "ARRAYS": "\n".join(declared),
        "ALLOCATE": "\n".join(made_here),
        "ARGUMENTS": ", ".join(arguments),
        "COPY": "\n".join(copies),
    }
    text = main_template()
    for word, value in texts.items():
        text = text.replace(f"@{word}@", value)
    return text


def _array(param: Param, array: Array) -> list[str]:
    """The declaration of an array of the cache, and the lines that make it."""
    name = f"in_{c_name(param.name)}"
    if array.size <= _MOST_WRITTEN and array.dtype.kind in "iu":
        numbers = ", ".join(map(str, array.ravel().tolist()))
        kind = f"{'u' * (array.dtype.kind == 'u')}int{8 * array.itemsize}_t"
        return [f"static {kind} {name}[] = {{{numbers}}}; /* {param.type} */"]
    if array.any():
        raise ArgumentError(f"{param.name} is not empty before the first token")
    return [
        f"static void *{name}; /* {param.type} */",
        f"  {name} = allocate({array.nbytes}), memset({name}, 0, {array.nbytes});",
    ]
