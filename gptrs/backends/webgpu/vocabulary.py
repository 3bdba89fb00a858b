"""The functions of one element in WGSL: what a kernel calls, and what these call in turn."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_INTEGERS = """
fn T_maximum(x: W, y: W) -> W { return select(y, x, LESS(y, x)); }
fn T_minimum(x: W, y: W) -> W { return select(y, x, LESS(x, y)); }
fn T_pow(x: W, power: i32) -> W {
  var base = x;
  var result: W = ONE;
  for (var n = max(power, 0); n > 0; n = n >> 1u) {
    if ((n & 1) == 1) { result = MUL(result, base); }
    base = MUL(base, base);
  }
  return WRAP(result);
}
"""
_WORDS = """
fn T_shift_left(x: W, by: W) -> W {
  let outside = by < 0W || by >= BITSW;
  return WRAP(select(x << u32(select(by, 0W, outside)), 0W, outside));
}
fn T_shift_right(x: W, by: W) -> W {
  let all = select(SIGN, 0W, by < 0W);
  return select(x >> u32(clamp(by, 0W, 31W)), all, by < 0W || by >= BITSW);
}
fn T_gcd(x: W, y: W) -> W {
  var a = SIZE_x;
  var b = SIZE_y;
  while (b != 0u) {
    let rest = a % b;
    a = b;
    b = rest;
  }
  return WRAP(W(a));
}
"""
_SIGNED = """
fn T_abs(x: i32) -> i32 { return WRAP(abs(x)); }
fn T_sign(x: i32) -> i32 { return sign(x); }
fn T_div(x: i32, y: i32) -> i32 {
  if (y == 0) { return 0; }
  if (y == -1) { return WRAP(0 - x); }
  let quotient = x / y;
  let rest = x - quotient * y;  // % has no sign that OpenGL promises
  return quotient - i32(rest != 0 && (rest ^ y) < 0);
}
fn T_remainder(x: i32, y: i32) -> i32 {
  if (y == 0 || y == -1) { return 0; }
  let rest = x - (x / y) * y;
  return select(rest, rest + y, rest != 0 && (rest ^ y) < 0);
}
"""
_UNSIGNED = """
fn T_abs(x: u32) -> u32 { return x; }
fn T_sign(x: u32) -> u32 { return min(x, 1u); }
fn T_div(x: u32, y: u32) -> u32 { return select(x / max(y, 1u), 0u, y == 0u); }
fn T_remainder(x: u32, y: u32) -> u32 { return select(x % max(y, 1u), 0u, y == 0u); }
"""
_NAME = re.compile(r"[A-Za-z_]\w*")
_PART = re.compile(
    r"^(?:fn|struct|var<private>) (\w+).*?(?=^(?:fn|struct|var<private>|//) |\Z)", re.S | re.M
)


def _integers(kind: str) -> str:
    """The functions of one integer type."""
    signed, bits = kind[0] == "i", int(kind[1:])
    if bits == 64:
        text = _INTEGERS.replace("LESS", f"{kind}_less").replace("MUL", "u64_mul")
        text = text.replace("WRAP(result)", "result").replace("ONE", "vec2<u32>(1u, 0u)")
        return text.replace("T_", f"{kind}_").replace(" W", " vec2<u32>")
    word = kind[0] + "32"
    text = _INTEGERS + _WORDS + (_SIGNED if signed else _UNSIGNED)
    text = re.sub(r"LESS\((\w), (\w)\)", r"(\1 < \2)", text)
    text = re.sub(r"MUL\((\w+), (\w+)\)", r"(\1 * \2)", text)
    text = text.replace("ONE", f"1{kind[0]}").replace("BITSW", f"{bits}{kind[0]}")
    text = re.sub(r"(\d)W", rf"\1{kind[0]}", text)
    text = re.sub(r"SIZE_(\w)", r"u32(abs(\1))" if signed else r"\1", text)
    text = text.replace("SIGN", "x >> 31u" if signed else "0u")
    wrap = "(" if bits == 32 else f"wrapped_{kind}("
    text = re.sub(r"\bW\b", word, text.replace("WRAP(", wrap)).replace("T_", f"{kind}_")
    if bits < 32:
        text += (
            f"fn wrapped_{kind}(x: {word}) -> {word} {{ return extractBits(x, 0u, {bits}u); }}\n"
        )
    return text


@cache
def functions() -> dict[str, str]:
    """By name: the text of a function, in the order in which they are declared."""
    folder = files("gptrs.backends.webgpu") / "vocabulary_text"
    texts = [each.read_text() for each in sorted(folder.iterdir(), key=lambda file: file.name)]
    kinds = [f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)]
    whole = "\n".join([*texts, *map(_integers, kinds)])
    return {found[1]: found[0].strip() for found in _PART.finditer(whole)}


def needed(text: str) -> str:
    """The functions that ``text`` calls, and those that they call."""
    known = functions()
    found: set[str] = set()
    left = [text]
    while left:
        names = set(_NAME.findall(left.pop())) & known.keys()
        left += [known[name] for name in names - found]
        found |= names
    return "\n".join(known[name] for name in known if name in found)
