"""The GPTRS_* environment variables; no other module reads them.

A variable is read at each access, so that a notebook can change it. `raw_all` gives the texts of
several variables for the fast key of a call (`gptrs.jit.fast_path`), without parsing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from gptrs.deprecated import GOES
from gptrs.errors import SettingError, SettingWarning

T = TypeVar("T")

SETTINGS: dict[str, Setting[object]] = {}


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One environment variable: default, parser, expected values, and a sentence for the README."""

    name: str
    default: T
    read: Callable[[str], T]
    expected: str
    help: str
    old: str = ""
    """Its former name, read for one more version where the new one is not set."""
    _last: list[tuple[object, Any]] = field(default_factory=list[tuple[object, Any]])

    def __post_init__(self) -> None:
        SETTINGS[self.name] = self  # pyright: ignore[reportArgumentType]
        self._last.append((None, self.default))  # text and value of the last read

    def __call__(self) -> T:
        """The value now. Raises `SettingError` when the variable's text cannot be read."""
        last = self._last[0]
        name = self.old if self.old and raw(self.name) is None else self.name
        if (text := raw(name)) == last[0]:
            return last[1]
        value = self._value(name, os.environ.get(name))
        if raw(name) == text:  # no other thread changed it meanwhile
            self._last[0] = text, value
        return value

    def put(self, text: str) -> None:
        """Set the variable, for this process and those that it starts."""
        os.environ[self.name] = text

    def _value(self, name: str, text: str | None) -> T:
        if text is None or text == "":
            return self.default
        try:
            return self.read(text)
        except (ValueError, KeyError):
            raise SettingError(
                f"{name}={text!r}: expected {self.expected}", fix=f"unset {name} or mend it"
            ) from None


class _Encoded(dict[str, object]):
    """Names of variables in the encoding of ``os.environ``, cached."""

    def __missing__(self, name: str) -> object:
        self[name] = encoded = getattr(os.environ, "encodekey", str)(name)
        return encoded


_encoded = _Encoded()


def raw(name: str) -> object:
    """The undecoded text of a variable, None if it is not set; for comparison only.

    Every call of a jitted function reads several variables, most of them not set. `os.environ.get`
    takes 2 µs for these (it raises and catches an error), this a tenth of that.
    """
    try:
        return os.environ._data.get(_encoded[name])  # type: ignore[attr-defined]
    except AttributeError:  # `os.environ` was replaced by another mapping
        return os.environ.get(name)


class _AllEncoded(dict[tuple[str, ...], tuple[object, ...]]):
    def __missing__(self, names: tuple[str, ...]) -> tuple[object, ...]:
        self[names] = encoded = tuple([_encoded[name] for name in names])
        return encoded


_all_encoded = _AllEncoded()


def raw_all(names: tuple[str, ...]) -> tuple[object, ...]:
    """`raw` of several variables, in less time than one after the other."""
    try:
        return tuple(map(os.environ._data.get, _all_encoded[names]))  # type: ignore[attr-defined]
    except AttributeError:
        return tuple(map(raw, names))


def _flag(text: str) -> bool:
    return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
        text.strip().lower()
    ]


def _at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if (value := int(text)) < least:
            raise ValueError(value)
        return value

    return read


def _within(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not least <= (value := int(text)) <= most:
            raise ValueError(value)
        return value

    return read


def _one_of(*names: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if (name := text.strip().lower()) not in names:
            raise ValueError(name)
        return name

    return read


def _some_of(*names: str) -> Callable[[str], str]:
    """Names in a list with commas; 0 stands for none of them."""

    def read(text: str) -> str:
        found = {part.strip().lower() for part in text.split(",")} - {"", "0"}
        if not found <= {*names}:
            raise ValueError(text)
        return ",".join(name for name in names if name in found)

    return read


eager = Setting(
    "GPTRS_EAGER", False, _flag, "0 or 1", "run every op at once, without tracing, for debugging"
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
    _at_least(1),
    "an integer of at least 1",
    "programs kept per decorated function; the least recently used is dropped, with a warning",
)
num_threads = Setting(
    "GPTRS_NUM_THREADS",
    0,
    _at_least(0),
    "an integer of at least 0",
    "threads that a program may use; 0 means all cores",
)
verify = Setting(
    "GPTRS_VERIFY", True, _flag, "0 or 1", "check the program again after every rewrite pass"
)
opt_pre_iters = Setting(
    "GPTRS_OPT_PRE_ITERS",
    8,
    _at_least(0),
    "an integer of at least 0",
    "how often the passes before claims may run over a program; 0 leaves them out",
)
opt_post_iters = Setting(
    "GPTRS_OPT_POST_ITERS",
    8,
    _at_least(0),
    "an integer of at least 0",
    "how often the passes after claims may run over a program; 0 leaves them out",
)
winograd = Setting(
    "GPTRS_WINOGRAD",
    True,
    _flag,
    "0 or 1",
    "whether 3 × 3 convolutions may be done with fewer multiplications, which rounds more",
)
compressed_weights = Setting(
    "GPTRS_COMPRESSED_WEIGHTS",
    True,
    _flag,
    "0 or 1",
    "whether weights of f32 and bf16 are kept in 28 and 12 bits, of which none is lost",
    old="GPTRS_CODED_WEIGHTS",
)
precise = Setting(
    "GPTRS_PRECISE",
    False,
    _flag,
    "0 or 1",
    "give the bits of eager mode: leave out what changes how results round",
)
strict_dtypes = Setting(
    "GPTRS_STRICT_DTYPES",
    False,
    _flag,
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
    _at_least(-1),
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
    _one_of("off", "raise", "log", "raise+inf", "log+inf"),
    "off, raise or log, the last two with +inf for infinities too",
    "find the instruction that makes a NaN in a result that no argument has, and raise an error or "
    "warn; `raise+inf` and `log+inf` do so for infinities too",
)
check = Setting(
    "GPTRS_CHECK",
    False,
    _flag,
    "0 or 1",
    "run every call by the reference backend too, and raise an error where results differ by more "
    "than rounding",
)
debug = Setting(
    "GPTRS_DEBUG",
    0,
    _within(0, 6),
    "an integer from 0 to 6",
    "what is said of each program on stderr: 1 a line, 2 also its passes, 3 its texts, 4 its plan "
    "and loops, 5 LLVM IR, 6 assembly",
)
explain = Setting(
    "GPTRS_EXPLAIN",
    "",
    _some_of("1", "summary"),
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
    _flag,
    "0 or 1",
    "write what each pass did into the dump, as passes.jsonl",
)
full_traceback = Setting(
    "GPTRS_TRACEBACK", False, _flag, "0 or 1", "keep this package's own frames in tracebacks"
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
    _flag,
    "0 or 1",
    "replay calls on NVIDIA and AMD GPUs as graphs from the third one on, such as the steps of a "
    "decode; a call that fails may have overwritten donated arguments",
)
torch_tf32 = Setting(
    "GPTRS_TORCH_TENSORFLOAT",
    False,
    _flag,
    "0 or 1",
    "let GPUs round the operands of f32 products to TF32",
)
driver = Setting(
    "GPTRS_DRIVER",
    "",
    _one_of("pool", "numba"),
    "pool or numba",
    "what runs kernels on several threads; empty means the pool where there is a futex (Linux); "
    "with numba fused loops are parallel Numba functions",
)
isa = Setting(
    "GPTRS_ISA",
    "",
    _one_of("avx512", "avx2", "neon", "generic"),
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
    _at_least(0),
    "an integer of at least 0",
    "bytes of compiled kernels kept, least recently used out; 0 keeps none",
)
compile_processes = Setting(
    "GPTRS_COMPILE_PROCESSES",
    3,
    _at_least(0),
    "an integer of at least 0",
    "processes that may be started to compile kernels beside this one, fewer than a program's "
    "threads",
)
parameter_cache_bytes = Setting(
    "GPTRS_PARAMETER_CACHE_BYTES",
    -1,
    _at_least(-1),
    "an integer of at least -1",
    "bytes of weights held in the forms that kernels want, least recently used out; -1 means no"
    " limit",
)
result_cache_bytes = Setting(
    "GPTRS_RESULT_CACHE_BYTES",
    512 * 2**20,
    _at_least(0),
    "an integer of at least 0",
    "bytes of freed large results whose memory is kept for the next ones; 0 keeps none",
)
max_pixels = Setting(
    "GPTRS_MAX_PIXELS",
    64_000_000,
    _at_least(1),
    "an integer of at least 1",
    "pixels that an image may have: one with more is refused before it is decoded",
)


REWRITING: tuple[Setting[bool] | Setting[int], ...] = (
    *(strict_dtypes, precise, winograd, opt_pre_iters, opt_post_iters, fuel),
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
