"""Random numbers from Philox4x32-10: the source of a kernel for each distribution and dtype.

    for item in first … last:                        # parallel: GROUP blocks of words of a seed
        for block in item:                           # vectorised: one block a lane
            words[4 block … 4 block + 3] = philox(block, key)
        for element in item:                         # vectorised
            out[element] = number of its words, rounded to the dtype

`gptrs.ir.ops.random` defines which words serve an element and what it becomes. Here are the bits
of its NumPy meaning, but for the last ones of the logarithm, sine and cosine of `rng_normal`.
"""

from __future__ import annotations

from typing import Literal

GROUP = 64
"""Blocks of a group; it has four times as many words."""
_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = "uint64(4294967295)"

Distribution = Literal["uniform", "normal", "bits"]
_STREAMS: dict[Distribution, str] = {"uniform": "0", "normal": "1", "bits": "stream"}
NUMBERS: dict[Distribution, tuple[str, ...]] = {
    "uniform": ("low", "span", "least", "greatest"),
    "normal": ("mean", "std"),
    "bits": (),
}
"""The numbers in the argument block, after the addresses of seeds and result, the elements of a
seed and its groups; of bits, the stream and perhaps the address of the starts."""


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
    bits: int = 32,
    starts: bool = False,
) -> str:
    """The source of the kernel ``name``. ``seed`` and ``out`` are pointer types, then a seed in
    terms of ``seed[which]``, and what is stored of the number ``x``. ``bits`` are those of an
    element of "bits"; with ``starts`` each seed has a block to start from."""
    numbers = "".join(f", {number}: float64" for number in NUMBERS[distribution])
    if distribution == "bits":
        numbers = ", stream: int64" + (", starts: uint64s" if starts else "")
        lines = _bits(wide, bits)
    else:
        lines = _uniform(wide) if distribution == "uniform" else _normal(wide)
    body = "\n".join(line.replace("STORED", out[1]) for line in lines)
    place = f"uint64(group * {GROUP} + block)" + (" + starts[which]" if starts else "")
    parameters = f"seed: {seed[0]}, out: {out[0]}, count: int64, groups: int64{numbers}"
    return f"""\
def {name}({parameters}, first, last):
    words = local_uint32s({4 * GROUP})
    made = local_doubles({4 * GROUP})
    for item in range(first, last):
        which, group = item // groups, item % groups
        key = uint64(int64({seed[1]}))
        key0, key1 = key & {_LOW}, key >> uint64(32)
        begin = group * {elements_of_group(wide=wide)}
        live = min({elements_of_group(wide=wide)}, count - begin)
        begin += which * count
        for block in range((live + {3 - 2 * wide}) // {4 - 2 * wide}):
            number = {place}
            c0, c1 = number & {_LOW}, number >> uint64(32)
            c2, c3 = uint64({_STREAMS[distribution]}), uint64(0)
{_rounds()}
            words[4 * block] = uint32(c0)
            words[4 * block + 1] = uint32(c1)
            words[4 * block + 2] = uint32(c2)
            words[4 * block + 3] = uint32(c3)
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


def _pair(place: str) -> str:
    """Two words as one of 64 bits."""
    upper, lower = (f"uint64(words[{place} + {number}])" for number in range(2))
    return f"(({upper} << uint64(32)) | {lower})"


def _fraction(place: str) -> str:
    """The upper 53 bits of two words."""
    return f"float64(int64({_pair(place)} >> uint64(11)))"


def _bits(wide: bool, bits: int) -> list[str]:
    return [
        "        for k in range(live):",
        f"            x = {_pair('2 * k') if wide else f'words[k] >> uint32({32 - bits})'}",
        "            out[begin + k] = STORED",
    ]


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
    return [
        f"        for k in range({4 * GROUP // words}):",
        f"            radius = math.sqrt(-2.0 * double_log({u}))",
        f"            sin, cos = double_sin_cos({angle})",
        "            made[2 * k] = mean + std * (radius * cos)",
        "            made[2 * k + 1] = mean + std * (radius * sin)",
        "        for k in range(live):",
        f"            x = {kind}(made[k])",
        "            out[begin + k] = STORED",
    ]
