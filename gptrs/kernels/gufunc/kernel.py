"""The kernel that calls a NumPy inner loop over a batch of matrices or lines.

    for outer in first / groups … last / groups         # batch axes that are not one with the rest
        begin, end = items of the groups of inner that are given
        arrays[k] = address[k] + outer · outer_step[k] + begin · step[k]
        loop(arrays, | end - begin | core extents |, | steps | core strides |, data)
        a raised flag "invalid" is a failure                # it was cleared before

    | loop | data | clear | flags | status | code | constant | inner | group |
    | addresses | outer steps | core extents | steps | core strides |

A thread takes whole groups of ``group`` items, of which the last one of ``inner`` may have fewer: a
loop that computes several items as vectors then has the same vectors for any number of threads. An
address of 0 is that of ``constant``, a number in the argument block. All steps are in bytes.
"""

from __future__ import annotations

from itertools import chain

from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.compiler.isa import Isa

WORDS = ("loop", "data", "clear", "flags", "status", "code", "constant", "inner", "group")
"""The first words of the argument block."""
_INVALID = 1  # FE_INVALID, on x86 and on ARM


def gufunc_kernel(isa: Isa, arrays: int, dimensions: int, *, fails: bool = False) -> KernelText:
    """The kernel for loops with so many arrays and core dimensions; with ``fails`` it looks at the
    floating-point flags. Extent: outer times groups of inner items of the batch."""
    name = "gufunc"
    at = len(WORDS), len(WORDS) + arrays, len(WORDS) + 2 * arrays
    steps = at[2] + dimensions
    lines = [
        *chain.from_iterable(_load(word, place) for place, word in enumerate(WORDS)),
        f"  %arrays = alloca ptr, i64 {arrays}",
        f"  %extents = alloca i64, i64 {dimensions + 1}",
        f"  %steps = getelementptr i64, ptr %block, i64 {steps}",
        f"  %constant_at = getelementptr i64, ptr %block, i64 {WORDS.index('constant')}",
        "  %constant_address = ptrtoint ptr %constant_at to i64",
    ]
    for k in range(dimensions):
        lines += [
            *_load(f"extent{k}", at[2] + k),
            f"  %extent{k}_at = getelementptr i64, ptr %extents, i64 {k + 1}",
            f"  store i64 %extent{k}, ptr %extent{k}_at",
        ]
    for k in range(arrays):
        lines += [
            *_load(f"given{k}", at[0] + k),
            f"  %inside{k} = icmp eq i64 %given{k}, 0",
            f"  %address{k} = select i1 %inside{k}, i64 %constant_address, i64 %given{k}",
            *_load(f"outer_step{k}", at[1] + k),
            *_load(f"step{k}", steps + k),
        ]
    lines += [
        "  %rounded = add i64 %inner, %group",
        "  %rounded_up = sub i64 %rounded, 1",
        "  %groups = sdiv i64 %rounded_up, %group",
        "  br label %head",
        "head:",
        "  %item = phi i64 [ %first, %entry ], [ %next, %done ]",
        "  %more = icmp slt i64 %item, %last",
        "  br i1 %more, label %body, label %end",
        "body:",
        "  %outer = sdiv i64 %item, %groups",
        "  %before = mul i64 %outer, %groups",
        "  %whole = add i64 %before, %groups",
        "  %is_last = icmp slt i64 %last, %whole",
        "  %next = select i1 %is_last, i64 %last, i64 %whole",
        "  %first_group = sub i64 %item, %before",
        "  %begin = mul i64 %first_group, %group",
        "  %last_group = sub i64 %next, %before",
        "  %full = mul i64 %last_group, %group",
        "  %is_full = icmp slt i64 %full, %inner",
        "  %end_item = select i1 %is_full, i64 %full, i64 %inner",
        "  %count = sub i64 %end_item, %begin",
        "  store i64 %count, ptr %extents",
    ]
    for k in range(arrays):
        lines += [
            f"  %far{k} = mul i64 %outer, %outer_step{k}",
            f"  %near{k} = mul i64 %begin, %step{k}",
            f"  %moved{k} = add i64 %far{k}, %near{k}",
            f"  %word{k} = add i64 %address{k}, %moved{k}",
            f"  %place{k} = getelementptr ptr, ptr %arrays, i64 {k}",
            f"  store i64 %word{k}, ptr %place{k}",
        ]
    if fails:
        lines += [
            "  %clearing = inttoptr i64 %clear to ptr",
            f"  %cleared = call i32 %clearing(i32 {_INVALID})",
        ]
    lines += [
        "  %function = inttoptr i64 %loop to ptr",
        "  %data_at = inttoptr i64 %data to ptr",
        "  call void %function(ptr %arrays, ptr %extents, ptr %steps, ptr %data_at)",
    ]
    lines += _check() if fails else ["  br label %done"]
    text = [
        f"define void @{name}(i64 %arguments, i64 %first, i64 %last) {{",
        "entry:",
        "  %block = inttoptr i64 %arguments to ptr",
        *lines,
        "done:",
        "  br label %head",
        "end:",
        "  ret void",
        "}",
    ]
    return KernelText("\n".join(text), name)


def _load(word: str, place: int) -> list[str]:
    return [
        f"  %{word}_at_word = getelementptr i64, ptr %block, i64 {place}",
        f"  %{word} = load i64, ptr %{word}_at_word, align 8",
    ]


def _check() -> list[str]:
    """Report the first failure, as `gptrs.kernels.driver.step_table.emit_failure` does."""
    return [
        "  %test = inttoptr i64 %flags to ptr",
        f"  %raised = call i32 %test(i32 {_INVALID})",
        "  %failed = icmp ne i32 %raised, 0",
        "  br i1 %failed, label %report, label %done",
        "report:",
        "  %words = inttoptr i64 %status to ptr",
        "  %code_at = getelementptr i64, ptr %words, i64 1",
        "  %exchange = cmpxchg ptr %code_at, i64 0, i64 %code monotonic monotonic",
        "  %is_first = extractvalue { i64, i1 } %exchange, 1",
        "  br i1 %is_first, label %store, label %done",
        "store:",
        "  %index_at = getelementptr i64, ptr %words, i64 2",
        "  store i64 %item, ptr %index_at",
        "  br label %done",
    ]
