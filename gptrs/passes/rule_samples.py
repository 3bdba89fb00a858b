"""The samples of rules as programs, and the check that a rule computes the same on them.

Input: a rule whose samples give holes types such as ``F[*]`` (see `gptrs.ir.rewrite.Rule`).
Extents, shapes and dtypes are filled in, in several ways; the pattern and what the rule makes of it
run by the NumPy meaning of their ops on equal arrays.
"""

from __future__ import annotations

import inspect
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

import ml_dtypes
import numpy as np

from gptrs.errors import PtirError, VerifyError
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Param, Program, verify
from gptrs.ir.rewrite import Fuel, Rule, Sample, apply_rules
from gptrs.ir.sample_arrays import differences, draw, same_bits
from gptrs.ir.sizes import evaluate, filled
from gptrs.ir.types import Array, Type, as_dtype
from gptrs.lazy_dataclass import dataclass

FLOATS = ("f32", "f64", "f16", "bf16", "fp8_e4m3", "fp8_e5m2")
SIGNED = ("si8", "si16", "si32", "si64")
INTEGERS = (*SIGNED, "ui8", "ui16", "ui32", "si4", "ui4")
WHOLE = (*INTEGERS, "ui64")
LETTERS: dict[str, tuple[str, ...]] = {
    "F": FLOATS,
    "I": WHOLE,
    "S": (*FLOATS, *SIGNED, "si4"),
    "T": (*FLOATS, *WHOLE),
    "W": ("f32", "f64"),
    "B": (*WHOLE, "i1"),
    "E": (*WHOLE, "i1"),
    "R": (*FLOATS, *WHOLE, "i1"),
}
"""What a letter in a sample stands for: floats, integers, signed, all numbers, wide floats; bits or
truth values; what is exact; whatever the op takes."""

_TYPE = re.compile(r"(\w+)\[(.*)\]( parameter)?(?: (\w+))?")
_STARS = ((2, 3), (), (1,), (0, 3), (7,), (2, 1, 3))
_EXTENTS = (0, 1, 2, 5)


@dataclass(frozen=True)
class Draw:
    """One way to fill a sample in."""

    dtype: str
    sizes: Mapping[str, int]
    star: tuple[int, ...] = _STARS[0]
    symbolic: bool = False


@dataclass(frozen=True)
class Drawn:
    """The pattern of a rule as a program, and arrays for it."""

    program: Program
    arrays: tuple[Array, ...]
    sizes: Mapping[str, int]


def letter_of(sample: Sample) -> str:
    """The letter that stands for the dtype; none in a sample of fixed dtypes."""
    found = set(re.findall(r"'([FISTWBER])[\[']", str({**sample})))
    assert len(found) <= 1, found
    return found.pop() if found else ""


def draws(rule: Rule, sample: Sample) -> Iterator[Draw]:
    """The usual sizes with every dtype first; then other sizes, symbols, with some dtypes."""
    names = sorted(set(re.findall(r"(?<![\w'])([kmn])(?![\w'])", str({**sample}))))
    usual = {name: 2 + i for i, name in enumerate(("k", "m", "n"))}
    dtypes = LETTERS.get(letter_of(sample), ("f32",))
    for dtype in dtypes:
        yield Draw(dtype, usual)
    rng = np.random.default_rng(zlib.crc32(f"{rule.name} {sorted(sample)}".encode()))
    some = [str(name) for name in rng.permutation(dtypes)[:2]]
    for number in range(4):
        sizes = {name: int(rng.choice(_EXTENTS)) for name in usual}
        star = _STARS[1 + int(rng.integers(len(_STARS) - 1))]
        if names or "*" in str({**sample}):
            yield Draw(some[number % len(some)], sizes, star)
    if names:
        yield Draw(some[0], {name: max(1, size) for name, size in usual.items()}, symbolic=True)


def filled_in(rule: Rule, sample: Sample, how: Draw) -> Drawn | None:
    """The pattern with a sample filled in; None where its ops do not take that."""
    recorder = Recorder(rule.name)
    values: list[str] = []

    def fill(thing: Any, name: str) -> Any:
        if isinstance(thing, tuple):
            return tuple(fill(part, name) for part in cast("tuple[Any, ...]", thing))
        if isinstance(thing, str) and (found := _TYPE.fullmatch(thing)):
            values.append(found[4] or ("" if rule.finite else "any"))
            role = "parameter" if found[3] else "input"
            return recorder.input(_type(found[1], found[2], how), name, role=role)
        if isinstance(thing, str):
            return as_dtype(how.dtype if thing in LETTERS else thing)
        return thing if how.symbolic else filled(thing, how.sizes)

    try:
        holes = {name: fill(thing, name) for name, thing in sample.items() if not callable(thing)}
        with interpreter(recorder):
            for name, thing in sample.items():
                if callable(thing):
                    wanted = inspect.signature(thing).parameters
                    holes[name] = thing(*(holes[n] for n in wanted))
            taken = inspect.signature(rule.source).parameters
            result = rule.source(**{n: holes[n] for n in taken})
        program = recorder.finish([result])
    except PtirError:
        return None
    arrays = tuple(_array(p, v, how) for p, v in zip(program.params, values, strict=True))
    return Drawn(program, arrays, how.sizes if how.symbolic else {})


def _type(letter: str, extents: str, how: Draw) -> Type:
    star = ",".join(map(str, how.star))
    text = re.sub(r"\b([kmn])\b", r"?\1", extents.replace("*", star) if extents == "*" else extents)
    type = Type.parse(f"{how.dtype if letter in LETTERS else letter}[{text}]")
    return type if how.symbolic else cast("Type", filled(type, how.sizes))


def _array(param: Param, values: str, how: Draw) -> Array:
    seed = zlib.crc32(f"{param.name} {param.type} {values}".encode())
    type = cast("Type", filled(param.type, how.sizes))
    return draw(type, values, np.random.default_rng(seed))


def difference(rule: Rule, found: Array, expected: Array) -> str:
    """What is wrong with the result of a rewritten program; empty where nothing is."""
    if not rule.rounds:
        return "" if same_bits(found, expected) else differences(found, expected) or "a sign of 0"
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return differences(found, expected)
    a, b = found.astype(np.float64), expected.astype(np.float64)
    info = cast("Any", ml_dtypes.finfo(found.dtype))
    with np.errstate(all="ignore"):
        allowed = rule.ulps * np.maximum(
            float(info.eps) * np.maximum(np.abs(b), rule.magnitude), float(info.smallest_subnormal)
        )
        good = (a == b) | ((a != a) & (b != b)) | (np.abs(a - b) <= allowed)
    bad = np.argwhere(~good)
    if not len(bad):
        return ""
    at = tuple(map(int, bad[0]))
    return f"{len(bad)} of {good.size} elements, first {at}: found {a[at]}, expected {b[at]}"


def check_rule(rule: Rule) -> None:
    """Run the pattern of ``rule`` and its replacement on arrays drawn for its samples.

    Raises `VerifyError` for a rule without samples, one that does not apply to a sample, and one
    that computes something else, with the programs and the difference.
    """
    if not rule.samples:
        raise VerifyError(
            f"rule {rule.name} has no samples",
            fix='give them: @ptir.rewrite(pattern, samples=[{"x": "F[*]"}])',
        )
    for sample in rule.samples:
        applied = [_applies(rule, sample, how) for how in draws(rule, sample)]
        if not any(applied):
            raise VerifyError(f"rule {rule.name} never applies to its sample {dict(sample)}")


def _applies(rule: Rule, sample: Sample, how: Draw) -> bool:
    """Whether the rule applies to a sample filled in. Raises `VerifyError` where it is wrong."""
    drawn = filled_in(rule, sample, how)
    if drawn is None or drawn.sizes:
        return False
    fuel = Fuel()
    after = apply_rules(drawn.program, (rule,), fuel)
    if not fuel.log:
        return False
    verify(after)
    (expected,), (found,) = (evaluate(each, drawn.arrays) for each in (drawn.program, after))
    if problem := difference(rule, found, expected):
        raise VerifyError(
            f"rule {rule.name} computes something else: {problem}\n{drawn.program}\n{after}",
            fix="mend it, or say rounds=True, ulps=... if it only rounds otherwise",
        )
    return True
