"""Cross-compilation: kernels for other CPUs from the same generators, checked in assembly."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import llvmlite.binding as llvm  # pyright: ignore[reportMissingTypeStubs]
import pytest

from gptrs.kernels.attention.kernel import Head, attention_kernel
from gptrs.kernels.compiler.cache_key import Code, cache_key
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.compiler.isa import ISAS, Isa, Target, target_for
from gptrs.kernels.conv.depthwise import Depthwise, depthwise_kernel
from gptrs.kernels.conv.direct import conv_kernel
from gptrs.kernels.conv.indirect_gemm import Epilogue
from gptrs.kernels.conv.inverted_bottleneck import bottleneck_kernel
from gptrs.kernels.conv.pooling import avg_pool_kernel, global_avg_pool_kernel, max_pool_kernel
from gptrs.kernels.conv.window_tiles import Window
from gptrs.kernels.conv.winograd import (
    Outputs,
    winograd_filter_kernel,
    winograd_input_kernel,
    winograd_output_kernel,
)
from gptrs.kernels.conv.winograd_product import winograd_product_kernel
from gptrs.kernels.gemm.blocked import blocked_gemm_kernel
from gptrs.kernels.gemm.dot import dot_kernel, dot_totals_kernel
from gptrs.kernels.gemm.gemv import gemv_kernel
from gptrs.kernels.gemm.gemv_transposed import gemv_transposed_kernel
from gptrs.kernels.gemm.grouped import (
    gather_rows_kernel,
    group_rows_kernel,
    grouped_gemm_kernel,
    pack_groups_kernel,
)
from gptrs.kernels.gemm.narrow import narrow_product_kernel
from gptrs.kernels.gemm.packed_gemv import packed_gemv_kernel
from gptrs.kernels.gemm.packing import pack_columns_kernel, pack_rows_kernel, widen_rows_kernel
from gptrs.kernels.gemm.product import Product
from gptrs.kernels.rowwise.block_copy import ELEMENT_BYTES, copy_at_kernel
from gptrs.kernels.rowwise.norm import layer_norm_kernel, rms_norm_kernel, softmax_kernel
from gptrs.kernels.rowwise.rotary import Pairs, rotary_kernel
from gptrs.kernels.rowwise.take import take_kernel, take_panels_kernel
from gptrs.kernels.vector_math import elementwise_kernel
from gptrs.kernels.weight_compression.encoder import compress_kernel
from gptrs.kernels.weight_compression.format import COMPRESSIBLE
from tests.support.kernels import SCALE, opened

pytestmark = pytest.mark.slow

TARGETS = {
    "avx512": ("x86_64-unknown-linux-gnu", "sapphirerapids"),
    "avx2": ("x86_64-unknown-linux-gnu", "haswell"),
    "neon": ("aarch64-unknown-linux-gnu", "neoverse-n1"),
}
FMA = {
    "avx512": r"vfmadd\d+ps\s.*%zmm",
    "avx2": r"vfmadd\d+ps\s.*%ymm",
    "neon": r"fmla\s+v\d+\.4s",
}
DECODING = {
    "avx512": (r"vpshufb\s.*%zmm", r"vpunpcklbw\s.*%zmm", r"vpunpckhbw\s.*%zmm"),
    "avx2": (r"vpshufb\s.*%ymm", r"vpunpcklbw\s.*%ymm", r"vpunpckhbw\s.*%ymm"),
    "neon": (r"tbl\s+v\d+\.16b", r"zip1\s+v\d+\.16b", r"zip2\s+v\d+\.16b"),
}
SPILLED = r"\(%rsp\).*%[xyz]mm|%[xyz]mm.*\(%rsp\)|\bq\d+.*\[sp"  # a vector on the stack
FOLLOWS = Epilogue("relu", last=True)
TILES: tuple[Outputs, ...] = (2, 4)
BUILDERS: dict[str, Callable[[Isa], KernelText]] = {
    **{
        f"tiles {w}": partial(blocked_gemm_kernel, product=Product(w))
        for w in ("f32", "f16", "bf16")
    },
    **{
        f"rows {w}": partial(packed_gemv_kernel, product=Product(w)) for w in ("f32", "f16", "bf16")
    },
    **{
        f"tiles {w} compressed": partial(blocked_gemm_kernel, product=Product(w, True))
        for w in COMPRESSIBLE
    },
    **{
        f"rows {w} compressed": partial(packed_gemv_kernel, product=Product(w, True))
        for w in COMPRESSIBLE
    },
    **{f"compress {w}": partial(compress_kernel, weights=w) for w in COMPRESSIBLE},
    "tiles gelu": partial(blocked_gemm_kernel, product=Product(activation="gelu_tanh")),
    "narrow": partial(narrow_product_kernel, product=Product(), depth=3, columns=4),
    "gemv": partial(gemv_kernel, product=Product()),
    "gemv in short blocks": partial(gemv_kernel, product=Product(), short=True),
    "gemv transposed": partial(gemv_transposed_kernel, product=Product()),
    "dot": partial(dot_kernel, product=Product()),
    "dot totals": partial(dot_totals_kernel, product=Product()),
    "pack rows": lambda isa: pack_rows_kernel(isa, isa.tile_rows),
    "pack columns": pack_columns_kernel,
    "widen rows": widen_rows_kernel,
    "group rows": group_rows_kernel,
    "gather rows": gather_rows_kernel,
    "pack groups": pack_groups_kernel,
    "grouped gemm": grouped_gemm_kernel,
    "attention": partial(attention_kernel, head=Head(64, causal=True)),
    "layer norm": layer_norm_kernel,
    "rms norm": rms_norm_kernel,
    "softmax": softmax_kernel,
    "rotary": partial(rotary_kernel, pairs=Pairs()),
    "rotary interleaved": partial(rotary_kernel, pairs=Pairs(interleaved=True)),
    "take": take_kernel,
    "take compressed": partial(take_panels_kernel, compressed=True),
    **{f"copy at {n}": partial(copy_at_kernel, size=n) for n in ELEMENT_BYTES},
    **{
        f"depthwise {k}x{k} by {stride}": partial(
            depthwise_kernel,
            window=Window((k, k), (stride, stride)),
            follows=Depthwise(activation="relu6"),
        )
        for k, stride in ((3, 1), (3, 2), (5, 1), (7, 1))
    },
    "conv": partial(conv_kernel, epilogue=FOLLOWS),
    "bottleneck": bottleneck_kernel,
    "winograd product": winograd_product_kernel,
    **{f"winograd pixels {m}": partial(winograd_input_kernel, m=m) for m in TILES},
    **{f"winograd sums {m}": partial(winograd_output_kernel, m=m, epilogue=FOLLOWS) for m in TILES},
    **{f"winograd taps {m}": partial(winograd_filter_kernel, m=m) for m in TILES},
    "max pool": partial(max_pool_kernel, window=Window((3, 3), (2, 2))),
    "mean pool": partial(avg_pool_kernel, window=Window((3, 3)), count_padding=False),
    "mean of images": global_avg_pool_kernel,
    **{name: partial(elementwise_kernel, function=name) for name in ("exp", "erf")},
}


@pytest.fixture(autouse=True)
def compilers() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def target(name: str) -> Target:
    triple, cpu = TARGETS[name]
    return target_for(ISAS[name], triple, cpu, {})


def code(kernel: KernelText) -> Code:
    return Code("llvm", kernel.text, (kernel.name,))


def kept(of: Code, name: str, kind: str, compiled: Callable[[], bytes]) -> bytes:
    """What LLVM makes of a code for a target, kept between runs as kernels are."""
    store, key = opened(), f"{cache_key(of, target(name))}-{kind}"
    if (data := store.load(key)) is None:
        store.store(key, data := compiled())
    return data


def object_code(of: Code, name: str) -> bytes:
    return kept(of, name, "object", lambda: of.build(target(name)))


def assembly(of: Code, name: str) -> str:
    return kept(of, name, "assembly", lambda: of.assembly(target(name)).encode()).decode()


def loops(assembly: str) -> list[str]:
    """The blocks that branch back to their own beginning."""
    blocks = re.findall(r"^(\.L\w+):.*\n((?:(?!\.L\w+:|\w+:).*\n)*)", assembly, re.MULTILINE)
    found = [
        re.search(rf"\A(?s:.*?)\b(?:j\w+|b\.\w+)\s+{re.escape(n)}\n", text) for n, text in blocks
    ]
    return [match[0] for match in found if match]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("builder", BUILDERS)
def test_every_kernel_has_object_code(builder: str, name: str) -> None:
    level = ISAS[name]
    assert len(object_code(code(BUILDERS[builder](level)), name)) > 500


@pytest.mark.parametrize("name", FMA)
@pytest.mark.parametrize("weights", ["f32", "bf16"])
def test_a_tile_stays_in_registers(weights: str, name: str) -> None:
    level = ISAS[name]
    text = assembly(code(BUILDERS[f"tiles {weights}"](level)), name)
    wanted = level.tile_rows * level.tile_vectors
    whole = [loop for loop in loops(text) if len(re.findall(FMA[name], loop)) == wanted]
    assert whole, "the loop over the depth of a whole tile, one turn for each row of the panel"
    for loop in whole:
        assert not re.search(SPILLED, loop), loop


@pytest.mark.parametrize("name", FMA)
def test_packed_gemv_stays_in_registers(name: str) -> None:
    text = assembly(code(BUILDERS["rows f32"](ISAS[name])), name)
    found = [loop for loop in loops(text) if len(re.findall(FMA[name], loop)) >= 8]
    assert found
    for loop in found:
        assert not re.search(SPILLED, loop), loop


@pytest.mark.parametrize("name", DECODING)
@pytest.mark.parametrize("builder", ["rows", "tiles"])
@pytest.mark.parametrize("weights", COMPRESSIBLE)
def test_decoding_takes_an_instruction_a_step(weights: str, builder: str, name: str) -> None:
    """Heads are looked up and bytes interleaved in whole registers."""
    text = assembly(code(BUILDERS[f"{builder} {weights} compressed"](ISAS[name])), name)
    for instruction in DECODING[name]:
        assert re.search(instruction, text)


@pytest.mark.parametrize("name", FMA)
@pytest.mark.parametrize("builder", [name for name in BUILDERS if name.startswith("depthwise")])
def test_windows_stay_in_registers(builder: str, name: str) -> None:
    """In the loops over the rows of windows."""
    level, width = ISAS[name], int(builder.split()[1][0])
    text = assembly(code(BUILDERS[builder](level)), name)
    largest = 8 if width + 2 + 8 <= level.registers else 4
    rows = [loop for loop in loops(text) if len(re.findall(FMA[name], loop)) == largest * width]
    assert len(rows) == 1
    assert not re.search(SPILLED, rows[0]), rows[0]


@pytest.mark.parametrize("name", FMA)
@pytest.mark.parametrize("builder", ["conv", "winograd product"])
def test_a_row_block_stays_in_registers(builder: str, name: str) -> None:
    """In the loop over the depth, of which LLVM may write out two turns."""
    level = ISAS[name]
    text = assembly(code(BUILDERS[builder](level)), name)
    highest = re.search(rf"^igemm{level.tile_rows}_\w+:(?s:.*?)^\.Lfunc_end", text, re.MULTILINE)
    assert highest
    turns = [loop for loop in loops(highest[0]) if re.search(FMA[name], loop)]
    assert turns
    for loop in turns:
        turn = level.tile_rows * level.tile_vectors
        assert len(re.findall(FMA[name], loop)) in (turn, 2 * turn), loop
        assert not re.search(SPILLED, loop), loop


@pytest.mark.parametrize("name", TARGETS)
def test_generated_loops_use_vectors_of_the_level(name: str) -> None:
    text = assembly(Code("python", SCALE, ("scale",)), name)
    register = {"avx512": "%zmm", "avx2": "%ymm", "neon": ".4s"}[name]
    assert any(register in line for line in text.splitlines() if re.search("mul|fma|fml", line))
