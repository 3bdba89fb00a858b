"""Random numbers from Philox4x32-10: the source of a kernel for each distribution and dtype.

    for group in first … last:                       # parallel: GROUP blocks of four words
        for block in group:                          # vectorised: one block a lane
            words[4 block … 4 block + 3] = philox(block, key)
        for element in group:                        # vectorised
            out[element] = number of its words, rounded to the dtype

`gptrs.ir.ops.random` defines which words serve an element and what it becomes. Here are the bits
of its NumPy meaning, but for what the C library rounds otherwise in `rng_normal`.
"""

from __future__ import annotations

from typing import Literal

GROUP = 64
"""Blocks of a group; it has four times as many words."""
_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = "uint64(4294967295)"

Distribution = Literal["uniform", "normal"]
_STREAMS: dict[Distribution, int] = {"uniform": 0, "normal": 1}
NUMBERS: dict[Distribution, tuple[str, ...]] = {
    "uniform": ("low", "span", "least", "greatest"),
    "normal": ("mean", "std"),
}
"""The numbers in the argument block, after the addresses of seed and result and the count."""


def elements_of_group(*, wide: bool) -> int:
    """The elements that a group of blocks makes; ``wide`` ones take two words each."""
    return (2 if wide else 4) * GROUP


def source(
    name: str,
    distribution: Distribution,
    seed: tuple[str, str],
    out: tuple[str, str],
    *,
    wide: bool,
) -> str:
    """The source of the kernel ``name``. ``seed`` and ``out`` are pointer types, then the seed in
    terms of ``seed[0]``, and what is stored of the number ``x``."""
    numbers = ", ".join(f"{number}: float64" for number in NUMBERS[distribution])
    lines = _uniform(wide) if distribution == "uniform" else _normal(wide)
    body = "\n".join(line.replace("STORED", out[1]) for line in lines)
    return f"""\
def {name}(seed: {seed[0]}, out: {out[0]}, count: int64, {numbers}, first, last):
    words = local_uint32s({4 * GROUP})
    made = local_doubles({4 * GROUP})
    key = uint64(int64({seed[1]}))
    key0, key1 = key & {_LOW}, key >> uint64(32)
    for group in range(first, last):
        for block in range({GROUP}):
            number = uint64(group * {GROUP} + block)
            c0, c1 = number & {_LOW}, number >> uint64(32)
            c2, c3 = uint64({_STREAMS[distribution]}), uint64(0)
{_rounds()}
            words[4 * block] = uint32(c0)
            words[4 * block + 1] = uint32(c1)
            words[4 * block + 2] = uint32(c2)
            words[4 * block + 3] = uint32(c3)
        begin = group * {elements_of_group(wide=wide)}
        live = min({elements_of_group(wide=wide)}, count - begin)
{body}
"""


def _rounds() -> str:
    """The rounds one after the other, as a loop with a loop inside is not vectorised."""
    lines: list[str] = []
    for number in range(_ROUNDS):
        lines += [
            f"a, b = uint64({_MULTIPLIERS[0]}) * c0, uint64({_MULTIPLIERS[1]}) * c2",
            f"c0 = (b >> uint64(32)) ^ c1 ^ (key0 + uint64({number * _WEYL[0] % 2**32}) & {_LOW})",
            f"c2 = (a >> uint64(32)) ^ c3 ^ (key1 + uint64({number * _WEYL[1] % 2**32}) & {_LOW})",
            f"c1, c3 = b & {_LOW}, a & {_LOW}",
        ]
    return "\n".join(f"            {line}" for line in lines)


def _fraction(place: str) -> str:
    """The upper 53 bits of two words."""
    upper, lower = (f"uint64(words[{place} + {number}])" for number in range(2))
    return f"float64(int64((({upper} << uint64(32)) | {lower}) >> uint64(11)))"


def _uniform(wide: bool) -> list[str]:
    kind = "float64" if wide else "float32"
    fraction = f"{_fraction('2 * k')} * {2.0**-53!r}"
    narrow = f"float32(int32(words[k] >> uint32(8))) * float32({2.0**-24!r})"
    return [
        "        for k in range(live):",
        f"            u = {fraction if wide else narrow}",
        f"            x = {kind}(low) + u * {kind}(span)",
        f"            x = x if x > {kind}(least) else {kind}(least)",
        f"            x = x if x < {kind}(greatest) else {kind}(greatest)",
        "            out[begin + k] = STORED",
    ]


def _normal(wide: bool) -> list[str]:
    scale, words = (2.0**-53, 4) if wide else (2.0**-32, 2)
    u, v = (
        (_fraction("4 * k"), _fraction("4 * k + 2"))
        if wide
        else ("words[2 * k]", "words[2 * k + 1]")
    )
    kind = "float64" if wide else "float32"
    u, angle = (
        f"(float64({u}) + 1.0) * {scale!r}",
        f"6.283185307179586 * (float64({v}) * {scale!r})",
    )
    lines = [f"angle = {angle}", "sin, cos = math.sin(angle), math.cos(angle)"]
    if not wide:  # what is rounded to f32 does not depend on the last bits
        lines = [f"sin, cos = double_sin_cos({angle})"]
    return [
        f"        for k in range({4 * GROUP // words}):",
        f"            log = {'math.log' if wide else 'double_log'}({u})",
        "            radius = math.sqrt(-2.0 * log)",
        *(f"            {line}" for line in lines),
        "            made[2 * k] = mean + std * (radius * cos)",
        "            made[2 * k + 1] = mean + std * (radius * sin)",
        "        for k in range(live):",
        f"            x = {kind}(made[k])",
        "            out[begin + k] = STORED",
    ]
