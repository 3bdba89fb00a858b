"""Undefined symbols of object code, and the external functions that kernels may call.

`undefined_symbols` reads ELF and Mach-O symbol tables; `gptrs.kernels.compiler.codegen` compares
them with `ALLOWED` (libm, memcpy and the like) before object code is linked or stored, so that no
kernel calls Python, allocates or raises.
"""

from __future__ import annotations

import struct

# libm, each also with the suffix f for float32.
_MATH = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign"),
    *("cos", "cosh", "erf", "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "floor", "fma"),
    *("fmax", "fmin", "fmod", "hypot", "ldexp", "lgamma", "log", "log10", "log1p", "log2"),
    *("nearbyint", "nextafter", "pow", "rint", "round", "roundeven", "sin", "sincos", "sinh"),
    *("sqrt", "tan", "tanh", "tgamma", "trunc"),
)
# On complex numbers of two float64.
_COMPLEX = (
    *("cacos", "cacosh", "casin", "casinh", "catan", "catanh", "ccos", "ccosh", "cexp", "clog"),
    *("cpow", "csin", "csinh", "csqrt", "ctan", "ctanh"),
)
# LLVM replaces loops that copy or fill by calls of these.
_MEMORY = ("memcpy", "memmove", "memset", "bzero")

ALLOWED = frozenset([*_MATH, *(name + "f" for name in _MATH), *_COMPLEX, *_MEMORY])

# The linker defines it where code is position independent.
_LINKER = frozenset(["_GLOBAL_OFFSET_TABLE_"])


def undefined_symbols(data: bytes) -> frozenset[str]:
    """The names that an ELF or Mach-O object (64 bits, little-endian) expects from outside.

    Raises `ValueError` for anything else.
    """
    try:
        if data.startswith(b"\x7fELF\x02\x01"):
            return frozenset(_elf_undefined(data)) - _LINKER
        if data.startswith(b"\xcf\xfa\xed\xfe"):
            return frozenset(_macho_undefined(data))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"broken object code: {error}") from None
    raise ValueError("neither ELF nor Mach-O object code of 64 bits")


def _elf_undefined(data: bytes) -> list[str]:
    """Source: System V ABI, chapters "Sections" and "Symbol Table"."""
    offset = struct.unpack_from("<Q", data, 40)[0]
    entry_size, count = struct.unpack_from("<HH", data, 58)
    # name, type, flags, address, offset, size, link, info, alignment, entry size
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, offset + i * entry_size) for i in range(count)
    ]
    names: list[str] = []
    for section in sections:
        if section[1] != 2:  # SHT_SYMTAB
            continue
        start, size, strings = section[4], section[5], sections[section[6]][4]
        for at in range(start, start + size, 24):
            name, _, _, home = struct.unpack_from("<IBBH", data, at)
            if name and home == 0:  # SHN_UNDEF
                names.append(_text(data, strings + name))
    return names


def _macho_undefined(data: bytes) -> list[str]:
    """Source: mach-o/loader.h and mach-o/nlist.h."""
    commands = struct.unpack_from("<I", data, 16)[0]
    at = 32
    names: list[str] = []
    for _ in range(commands):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 2:  # LC_SYMTAB
            symbols, count, strings = struct.unpack_from("<III", data, at + 8)
            for i in range(count):
                name, flags, _, _, value = struct.unpack_from("<IBBHQ", data, symbols + 16 * i)
                # N_UNDF and external; with a value it is a common symbol, which is a definition.
                if flags & 0x0E == 0 and flags & 1 and value == 0:
                    names.append(_text(data, strings + name).removeprefix("_"))
        at += size
    return names


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
