"""Kernels in WGSL: statements and expressions of C, conversions, the functions that they take."""

from __future__ import annotations

import pytest

from gptrs.backends.webgpu.translation import translated
from gptrs.backends.webgpu.vocabulary import functions, needed

NAMES = {
    "x0": "f32",
    "x1": "i64",
    "x2": "u8",
    "out": "f32",
    "item": "isize",
    "n_N": "isize",
    "a": "i8",
    "b": "i8",
    "p": "i64",
    "q": "u64",
    "y": "f32",
}

STATEMENTS = {
    "const isize i1 = item % 5, of = item / 5;": (
        "let i1: i32 = (item % 5i);\nlet of_: i32 = (item / 5i);"
    ),
    "out[item] = x0[item] > 0 ? x0[item] : 0;": (
        "out[item] = select(0.0f, x0[item], (x0[item] > 0.0f));"
    ),
    "const i8 c = (i8)((u32)a + (u32)b);": (
        "let c: i32 = extractBits(i32((u32(a) + u32(b))), 0u, 8u);"
    ),
    "const u8 c = (u8)!x2[item];": "let c: u32 = u32(!(x2[item] != 0u));",
    "const isize p = 0 * 2 - 1;": "var p: i32 = (-1i);",
    "const isize at = (isize)x1[item];": "let at: i32 = isize_of_i64(x1[item]);",
    "const i64 c = (i64)((u64)p + (u64)q);": "let c: vec2<u32> = u64_add(p, q);",
    "const u8 c = (u8)(p < -1);": (
        "let c: u32 = u32(i64_less(p, vec2<u32>(4294967295u, 4294967295u)));"
    ),
    "const int outside = item < 0 || item >= n_N;": (
        "let outside: i32 = i32(((item < 0i) || (item >= n_N)));"
    ),
    "if (item) *failed = 1;": "if ((item != 0i)) {\n  atomicStore(&status[status_at], 1u);\n}",
    "f32 lanes[8] = {0};": "var lanes: array<f32, 8> = array<f32, 8>();",
    "const f32 c = -(f32)F32_INFINITY + 1e-05f;": "let c: f32 = ((-f32_infinity()) + 1e-05f);",
    "const f32 c = y / 0.0f;": "let c: f32 = (y / bitcast<f32>(u32(min(extent, 0i))));",
    "const u16 c = bf16_of_f32(y * 2);": "let c: u32 = bf16_of_f32((y * 2.0f));",
    "for (isize k = 0; k < n_N; k++) y += x0[k];": (
        "{\n  var k: i32 = 0i;\n  for (; (k < n_N); k += 1i) {\n    y = (y + x0[k]);\n  }\n}"
    ),
}


@pytest.mark.parametrize(("c", "wgsl"), STATEMENTS.items())
def test_a_statement(c: str, wgsl: str) -> None:
    assert "\n".join(translated([c], NAMES)) == wgsl


@pytest.mark.parametrize("c", ["const f32 c = y ` 2;", "const isize i = item"])
def test_what_is_no_kernel(c: str) -> None:
    with pytest.raises(SyntaxError):
        translated([c], NAMES)


def test_a_kernel_takes_what_it_calls() -> None:
    text = needed("f32_sinh(x)")
    assert "fn f32_sinh" in text
    assert "fn exp_tail" in text
    assert "fn f32_log" not in text
    assert {"i8_div", "u64_gcd", "f32_pow"} <= functions().keys()
