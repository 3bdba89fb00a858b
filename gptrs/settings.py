"""The GPTRS_* environment variables; no other module names them.

Each is a `Setting`: its name, default, parser, expected values, and a sentence for the table in the
documentation. Calling it reads it: ``settings.precise()``.
"""

from __future__ import annotations

import os

from gptrs.deprecated import GOES
from gptrs.environment_variables import (
    SETTINGS,
    Setting,
    at_least,
    flag,
    one_of,
    some_of,
    within,
)
from gptrs.errors import SettingWarning

eager = Setting(
    "GPTRS_EAGER", False, flag, "0 or 1", "run every op at once, without tracing, for debugging"
)
backend = Setting(
    "GPTRS_BACKEND",
    "faer",
    str,
    "the name of a backend",
    "the backend that runs programs; `auto` takes the best that is available",
)
cache_size = Setting(
    "GPTRS_CACHE_SIZE",
    128,
    at_least(1),
    "an integer of at least 1",
    "programs kept per decorated function; the least recently used is dropped, with a warning",
)
num_threads = Setting(
    "GPTRS_NUM_THREADS",
    0,
    at_least(0),
    "an integer of at least 0",
    "threads that a program may use; 0 means all cores",
)
verify = Setting(
    "GPTRS_VERIFY", True, flag, "0 or 1", "check the program again after every rewrite pass"
)
opt_pre_iters = Setting(
    "GPTRS_OPT_PRE_ITERS",
    8,
    at_least(0),
    "an integer of at least 0",
    "how often the passes before claims may run over a program; 0 leaves them out",
)
opt_post_iters = Setting(
    "GPTRS_OPT_POST_ITERS",
    8,
    at_least(0),
    "an integer of at least 0",
    "how often the passes after claims may run over a program; 0 leaves them out",
)
winograd = Setting(
    "GPTRS_WINOGRAD",
    True,
    flag,
    "0 or 1",
    "whether 3 × 3 convolutions may be done with fewer multiplications, which rounds more",
)
bf16_products = Setting(
    "GPTRS_BF16_PRODUCTS",
    False,
    flag,
    "0 or 1",
    "round what weights of bf16 multiply to bf16, as torch does; twice as fast on some CPUs",
)
compressed_weights = Setting(
    "GPTRS_COMPRESSED_WEIGHTS",
    True,
    flag,
    "0 or 1",
    "whether weights of f32 and bf16 are kept in 28 and 12 bits, of which none is lost",
    old="GPTRS_CODED_WEIGHTS",
)
precise = Setting(
    "GPTRS_PRECISE",
    False,
    flag,
    "0 or 1",
    "give the bits of eager mode: leave out what changes how results round",
)
strict_dtypes = Setting(
    "GPTRS_STRICT_DTYPES",
    False,
    flag,
    "0 or 1",
    "make operands of different dtypes an error instead of promoting them",
)
overrides = Setting(
    "GPTRS_OVERRIDES",
    "",
    str,
    "policies such as softmax: force=two_pass; attention: benchmark(cache=64)",
    "which implementations of composites run: `softmax: force=portable; attention: benchmark`",
)
fuel = Setting(
    "GPTRS_FUEL",
    -1,
    at_least(-1),
    "an integer of at least -1",
    "how many rewrites this process applies in all, to find a wrong one; -1 means every one",
)
fuel_log = Setting(
    "GPTRS_FUEL_LOG",
    "",
    str,
    "a file",
    "where rewrites are counted, and the last one that fuel allows is described: a line of JSON "
    "for each program",
)
debug_nans = Setting(
    "GPTRS_DEBUG_NANS",
    "off",
    one_of("off", "raise", "log", "raise+inf", "log+inf"),
    "off, raise or log, the last two with +inf for infinities too",
    "find the instruction that makes a NaN in a result that no argument has, and raise an error or "
    "warn; `raise+inf` and `log+inf` do so for infinities too",
)
check = Setting(
    "GPTRS_CHECK",
    False,
    flag,
    "0 or 1",
    "run every call by the reference backend too, and raise an error where results differ by more "
    "than rounding",
)
debug = Setting(
    "GPTRS_DEBUG",
    0,
    within(0, 6),
    "an integer from 0 to 6",
    "what is said of each program on stderr: 1 a line, 2 also its passes, 3 its texts, 4 its plan "
    "and loops, 5 LLVM IR, 6 assembly",
)
explain = Setting(
    "GPTRS_EXPLAIN",
    "",
    some_of("1", "summary"),
    "1, summary or 1,summary",
    "what is said of traces on stderr: 1 a line for each with its reason, time and remedy, summary "
    "a table at exit, 1,summary both",
)
dump = Setting(
    "GPTRS_DUMP",
    "",
    str,
    "a folder",
    "where each program is written: before and after its passes, its plan, its kernels",
)
pass_stats = Setting(
    "GPTRS_PASS_STATS",
    False,
    flag,
    "0 or 1",
    "write what each pass did into the dump, as passes.jsonl",
)
full_traceback = Setting(
    "GPTRS_TRACEBACK", False, flag, "0 or 1", "keep this package's own frames in tracebacks"
)
torch_compile = Setting(
    "GPTRS_TORCH_COMPILE",
    "",
    str,
    "a backend of torch.compile, such as inductor",
    "compile the functions that the torch backends emit by `torch.compile` with this backend; "
    "empty means that Python runs them",
)
torch_graphs = Setting(
    "GPTRS_TORCH_GRAPHS",
    False,
    flag,
    "0 or 1",
    "replay calls on NVIDIA and AMD GPUs as graphs from the third one on, such as the steps of a "
    "decode; a call that fails may have overwritten donated arguments",
)
torch_tf32 = Setting(
    "GPTRS_TORCH_TENSORFLOAT",
    False,
    flag,
    "0 or 1",
    "let GPUs round the operands of f32 products to TF32",
)
driver = Setting(
    "GPTRS_DRIVER",
    "",
    one_of("pool", "numba"),
    "pool or numba",
    "what runs kernels on several threads; empty means the pool where there is a futex (Linux); "
    "with numba fused loops are parallel Numba functions",
)
isa = Setting(
    "GPTRS_ISA",
    "",
    one_of("avx512", "avx2", "neon", "generic"),
    "avx512, avx2, neon or generic",
    "the vector instructions that kernels use; empty means the best that the CPU offers",
)
cache_dir = Setting(
    "GPTRS_CACHE_DIR",
    "",
    str,
    "a folder",
    "where compiled kernels are kept; empty means $XDG_CACHE_HOME/gptrs or ~/.cache/gptrs",
)
cache_bytes = Setting(
    "GPTRS_CACHE_BYTES",
    512 * 2**20,
    at_least(0),
    "an integer of at least 0",
    "bytes of compiled kernels kept, least recently used out; 0 keeps none",
)
compile_processes = Setting(
    "GPTRS_COMPILE_PROCESSES",
    3,
    at_least(0),
    "an integer of at least 0",
    "processes that may be started to compile kernels beside this one, fewer than a program's "
    "threads",
)
parameter_cache_bytes = Setting(
    "GPTRS_PARAMETER_CACHE_BYTES",
    -1,
    at_least(-1),
    "an integer of at least -1",
    "bytes of weights held in the forms that kernels want, least recently used out; -1 means no"
    " limit",
)
result_cache_bytes = Setting(
    "GPTRS_RESULT_CACHE_BYTES",
    512 * 2**20,
    at_least(0),
    "an integer of at least 0",
    "bytes of freed large results whose memory is kept for the next ones; 0 keeps none",
)
max_pixels = Setting(
    "GPTRS_MAX_PIXELS",
    64_000_000,
    at_least(1),
    "an integer of at least 1",
    "pixels that an image may have: one with more is refused before it is decoded",
)


REWRITING: tuple[Setting[bool] | Setting[int], ...] = (
    *(strict_dtypes, precise, winograd, bf16_products, opt_pre_iters, opt_post_iters, fuel),
)
"""The settings on which tracing and the passes depend: part of a program's key."""


_PREFIX = "GPTRS_"
_told: set[str] = set()


def complaints() -> list[tuple[str, type[Warning]]]:
    """Warnings about GPTRS_* variables that are no settings, or have a new name; each is returned
    once in a process."""
    found = sorted(n for n in os.environ if n.startswith(_PREFIX) and n not in SETTINGS)
    new = [name for name in found if name not in _told]
    _told.update(new)
    renamed = {setting.old: setting.name for setting in SETTINGS.values()}
    return [
        (f"{name} is called {renamed[name]} now; {GOES}", DeprecationWarning)
        if name in renamed
        else (_not_known(name), SettingWarning)
        for name in new
    ]


def _not_known(name: str) -> str:
    from difflib import get_close_matches  # for warnings alone

    known = [setting.removeprefix(_PREFIX) for setting in SETTINGS]
    near = get_close_matches(name.removeprefix(_PREFIX), known, n=1)
    return f"{name} is no setting of gptrs{f'; {_PREFIX}{near[0]} is one' if near else ''}"
