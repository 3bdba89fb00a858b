"""Triton's compiler, ahead of time: it needs no driver and no GPU.

A function has to have a file for Triton, which reads its text: the text is kept where Python finds
that of a notebook's cells (`linecache`).
"""

from __future__ import annotations

import hashlib
import linecache
import re
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.triton.tiles import tile_text
from gptrs.errors import PtirError
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import late_import

_ENTRY = re.compile(r"^define [^\n]*?@\w+\((.*?)\)[^\n()]*\{$", re.M)


class Target(NamedTuple):
    """What code is for: ``cuda`` or ``hip``, the architecture (90, ``gfx942``), and the threads of
    a warp."""

    backend: str
    architecture: int | str
    warp: int


@dataclass(frozen=True)
class TileCode:
    """The code of a tile program."""

    binary: bytes
    name: str
    """That of its function."""
    threads: int
    """Of a block, which is an item of the extent."""
    shared: int
    """Bytes of memory that a block shares."""
    scratch: int
    """Pointers that Triton appends to the arguments, to memory that these programs do not use."""


@cache
def has_triton() -> bool:
    """Whether Triton is installed, told without importing it."""
    return find_spec("triton") is not None


def tile_name(kernel: Kernel) -> str:
    """A name that tells tile programs apart."""
    text = f"{kernel.tiles} {tile_text(kernel, 'k')}"
    return f"{kernel.title}_{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def function(kernel: Kernel) -> Any:
    """The function of a tile program, as `triton.jit` makes it."""
    name = tile_name(kernel)
    text, file = tile_text(kernel, name), f"<gptrs {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"tl": late_import("triton.language")}
    exec(compile(text, file, "exec"), space)
    return late_import("triton").jit(space[name])


def compiled(kernel: Kernel, target: Target) -> TileCode:
    """The code of a tile program. Raises `PtirError` with what the compiler says."""
    tiles = kernel.tiles
    assert tiles is not None
    made = function(kernel)
    integers = (*kernel.numbers, *(f"n_{symbol}" for symbol in kernel.symbols))
    pointers = zip((array.name for array in kernel.arrays), tiles.pointers, strict=True)
    signature = {**dict(pointers), **dict.fromkeys(integers, "i64")}
    options = {"num_warps": tiles.warps, "num_stages": tiles.stages, "enable_fp_fusion": False}
    triton = late_import("triton")
    source = late_import("triton.compiler").ASTSource(made, signature)
    gpu = late_import("triton.backends.compiler").GPUTarget(*target)
    try:
        found = triton.compile(source, target=gpu, options=options)
    except Exception as error:  # of any kind: what a compiler of somebody else raises
        raise PtirError(f"Triton does not compile {tile_name(kernel)}: {error}") from error
    entry = _ENTRY.search(found.asm["llir"])
    assert entry is not None
    metadata = found.metadata
    used = (getattr(metadata, f"{kind}_scratch_size", 0) for kind in ("global", "profile"))
    if any(used):
        raise PtirError(f"{tile_name(kernel)} needs memory that Triton's runtime would give")
    return TileCode(
        found.asm["cubin" if target.backend == "cuda" else "hsaco"],
        metadata.name,
        metadata.num_warps * target.warp,
        metadata.shared,
        entry[1].count("%") - len(signature),
    )
