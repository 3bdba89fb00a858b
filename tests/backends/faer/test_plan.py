"""Plans: native steps alone, no copies, the same bits however a call is made."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import plan as plans
from gptrs.backends.faer.bound import Bound
from gptrs.backends.faer.step_templates import Sizes, TemplateBuilder, chunk_count
from gptrs.errors import DonatedError, ElementError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from gptrs.kernels.compiler import isa, loaded_object
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.models.gpt2 import GPT2, GPT2Config
from gptrs.nn.cache import KVCache
from tests.support.kernels import COUNT_IR

VOCABULARY = 211


def model(layers: int = 2, seed: int = 0) -> GPT2:
    rng = np.random.default_rng(seed)
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=48, n_layer=layers, n_head=3)

    def parameter(name: str, shape: tuple[int, ...]) -> Parameter:
        return Parameter(rng.standard_normal(shape).astype(np.float32) * 0.2, name)

    return GPT2.build(config, parameter)


def tokens(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(0, VOCABULARY, shape)


def cache(made: GPT2, batch: int, capacity: int = 40) -> KVCache:
    return made.init_cache(np.zeros(batch, np.int32), capacity)


def forward(made: GPT2, ids: Array, kept: KVCache, logits: Any = "last") -> tuple[Array, KVCache]:
    y, kept_now = made(Tensor(ids), kept, logits=logits)
    assert kept_now is not None
    return y.numpy(), kept_now


@pytest.fixture(autouse=True)
def faer() -> Any:
    with ptir.backend("faer"):
        yield


def report(made: GPT2, ids: Array, kept: KVCache) -> Any:
    return type(made).__call__.explain(made, Tensor(ids), kept, logits="last").report


@pytest.mark.parametrize("count", [1, 9])
def test_gpt2_runs_in_native_steps(count: int) -> None:
    made = model()
    found = report(made, tokens(1, count), cache(made, 1))
    assert found.instructions("reference") == 0
    assert found.instructions("call", "region", "view") == found.instructions() > 60
    assert found.copies == ()
    assert {s.note for s in found.steps if "update" in s.name} == {"in place"}


@pytest.mark.parametrize("count", [1, 9])
def test_what_the_cache_holds_is_read_where_it_lies(count: int) -> None:
    """Layers of it, too: a step takes as much memory beside a larger cache."""
    made = model()
    sizes = {report(made, tokens(1, count), cache(made, 1, n)).arena_bytes for n in (16, 64)}
    assert len(sizes) == 1


@pytest.mark.slow
def test_gpt2_needs_few_kernels_at_any_depth() -> None:
    def kernels(layers: int) -> set[str]:
        made = model(layers)
        used: set[str] = set()
        for count in (9, 1):
            used |= set(report(made, tokens(1, count), cache(made, 1)).kernels)
        return used

    assert kernels(2) == kernels(5)
    assert len(kernels(2)) <= 13  # and two that pack weights


def test_a_decode_step_copies_nothing_and_binds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = model()
    kept = cache(made, 1)
    arrays = [kept.keys.numpy(), kept.values.numpy()]
    _, kept = forward(made, tokens(1, 5), kept)
    _, kept = forward(made, tokens(1, 1), kept)
    binds: list[object] = []
    bind = plans.bind

    def counted(*args: Any) -> Bound:
        binds.append(args)
        return bind(*args)

    monkeypatch.setattr(plans, "bind", counted)
    for step in range(4):
        _, kept = forward(made, tokens(1, 1, seed=step), kept)
        now = [kept.keys.numpy(), kept.values.numpy()]
        assert all(a is b for a, b in zip(arrays, now, strict=True))
    assert binds == []


def logits_of_rows(made: GPT2, ids: Array, pieces: list[int]) -> Array:
    """The logits of all tokens, given in pieces of these lengths."""
    kept = cache(made, len(ids))
    found: list[Array] = []
    at = 0
    for count in pieces:
        y, kept = forward(made, ids[:, at : at + count], kept, logits="all")
        found.append(y)
        at += count
    return np.concatenate(found, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2", "4"])
@pytest.mark.parametrize("driver", ["pool", "numba"])
def test_bits_do_not_depend_on_how_a_call_is_made(
    threads: str, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = model()
    ids = tokens(8, 20)
    monkeypatch.setenv("GPTRS_NUM_THREADS", "1")
    whole = logits_of_rows(made, ids, [20])
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    monkeypatch.setenv("GPTRS_DRIVER", driver)
    assert np.array_equal(logits_of_rows(made, ids, [20]), whole)
    assert np.array_equal(logits_of_rows(made, ids, [1] * 20), whole)
    assert np.array_equal(logits_of_rows(made, ids, [3, 7, 1, 9]), whole)
    alone = np.concatenate([logits_of_rows(made, row[None], [20]) for row in ids])
    assert np.array_equal(alone, whole)


def together(count: int, work: Callable[[int], None]) -> None:
    """Run ``work`` in ``count`` threads; an error in one of them is raised here."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            with ptir.backend("faer"):
                work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("count", [2, 8])
def test_python_threads_share_a_function(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", "4")
    made = model()
    inputs = [tokens(1, 12, seed=i) for i in range(count)]
    expected = [logits_of_rows(made, ids, [4] + [1] * 8) for ids in inputs]

    def work(number: int) -> None:
        for _ in range(5):
            found = logits_of_rows(made, inputs[number], [4] + [1] * 8)
            assert np.array_equal(found, expected[number])

    together(count, work)


@pytest.mark.alone
def test_many_shapes_use_flat_memory() -> None:
    @ptir.jit(dynamic={"x": {0: "N"}})
    def f(x: Any, w: Any) -> Tensor:
        return ptir.softmax(ptir.gelu(x @ w)) + x.sum()

    w = np.ones((8, 8), np.float32)

    def resident(sizes: range) -> int:
        """Bytes in memory after calls at these sizes (not the peak, which other tests set)."""
        for n in sizes:
            f(np.ones((n, 8), np.float32), w)
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident(range(1, 201))
    assert resident(range(201, 701)) - before < 1 << 20


def test_a_new_size_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = model()
    for count in (1, 6):
        forward(made, tokens(1, count), cache(made, 1))
    known = set(loaded_object._libraries)  # pyright: ignore[reportPrivateUsage]
    for count in (2, 5, 7, 31):
        forward(made, tokens(2, count), cache(made, 2))
    assert set(loaded_object._libraries) == known  # pyright: ignore[reportPrivateUsage]


def test_an_index_that_is_not_there_names_the_users_line() -> None:
    made = model()
    ids = tokens(1, 3)
    ids[0, 1] = VOCABULARY
    with pytest.raises(ElementError) as found:
        forward(made, ids, cache(made, 1))
    with ptir.backend("reference"), pytest.raises(ElementError) as expected:
        forward(made, ids, cache(made, 1))
    assert str(found.value) == str(expected.value)


def test_a_read_only_cache_is_copied() -> None:
    made = model()
    kept = cache(made, 1)
    locked = kept.keys.numpy().copy()
    locked.flags.writeable = False
    kept = KVCache(Tensor(locked), kept.values, kept.length, kept.start)
    _, after = forward(made, tokens(1, 3), kept)
    assert not np.any(locked)
    assert np.any(after.keys.numpy())


def test_results_are_nobody_elses_memory() -> None:
    @ptir.jit
    def f(x: Any) -> Any:
        return x, x.reshape(-1), x + 1, (x + 1).reshape(-1), ptir.tensor(np.ones(3, np.float32))

    x = np.zeros((2, 3), np.float32)
    found = [t.numpy() for t in f(x)]
    again = [t.numpy() for t in f(x)]
    arrays = [x, *found, *again]
    for i, a in enumerate(arrays):
        for b in arrays[i + 1 :]:
            assert not np.shares_memory(a, b)


def test_an_update_copies_what_is_read_later() -> None:
    def shift(x: Any, part: Any) -> tuple[Tensor, Tensor]:
        return ptir.dynamic_update_slice(x, part, (1,)), x * 2

    f = ptir.jit(donate="x")(shift)
    x, part = np.arange(5, dtype=np.float32), np.full(2, 9, np.float32)
    updated, doubled = f(ptir.tensor(x.copy()), part)
    assert updated.tolist() == [0, 9, 9, 3, 4]
    assert doubled.tolist() == [0, 2, 4, 6, 8]
    assert len(f.explain(ptir.tensor(x), part).report.copies) == 1


def test_donated_memory_comes_back() -> None:
    @ptir.jit(donate="x")
    def f(x: Any, part: Any) -> Tensor:
        return ptir.dynamic_update_slice(x, part, (1,))

    given = ptir.tensor(np.zeros(5, np.float32))
    memory = given.numpy()
    assert f(given, np.ones(2, np.float32)).numpy() is memory
    with pytest.raises(DonatedError):
        given.numpy()


def test_an_argument_that_a_failing_call_must_leave_alone_is_copied_once() -> None:
    """And what was copied is updated in place, though a step may still fail."""

    @ptir.jit(donate="x")
    def f(x: Any, part: Any, i: Any) -> tuple[Tensor, Tensor]:
        for layer in range(3):
            x = ptir.dynamic_update_slice(x, part, (layer,))
        return x, part[i]

    part, outside = np.ones(2, np.float32), np.array([0, 7])
    given = ptir.tensor(np.zeros(5, np.float32))
    found = f.explain(given, part, outside).report
    notes = [step.note for step in found.steps if "update" in step.name]
    assert (len(found.copies), notes[1:]) == (1, ["in place"] * 2)
    with pytest.raises(ElementError, match="index 7"):
        f(given, part, outside)
    np.testing.assert_array_equal(given.numpy(), np.zeros(5))
    whole, rows = f(given, part, np.array([1, 0]))
    np.testing.assert_array_equal(whole.numpy(), [1, 1, 1, 1, 0])
    np.testing.assert_array_equal(rows.numpy(), [1, 1])


def test_arguments_of_any_layout() -> None:
    @ptir.jit
    def f(x: Any, y: Any) -> Tensor:
        return x @ y + 1

    wide = np.arange(48, dtype=np.float32).reshape(6, 8)
    odd = np.frombuffer(b"\0" + wide[:4, :4].tobytes(), np.float32, offset=1).reshape(4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (wide.T[:4, :4], wide[:4, ::2], wide[::-1][:4, :4], odd):
            y = wide[:4, :3]
            assert np.allclose(f(x, y).numpy(), x @ y + 1)


def test_half_precision_without_instructions_for_it_is_the_references(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GPTRS_ISA", "generic")

    @ptir.jit
    def doubled(x: Any) -> Any:
        return (x.astype("f32") * 2.0).astype("f16")

    x = np.arange(5, dtype=np.float16)
    np.testing.assert_array_equal(doubled(x).numpy(), x * 2)
    assert {step.kind for step in doubled.explain(x).report.steps} <= {"reference", "region"}


def test_an_operand_may_lie_between_another_one_and_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GPTRS_OPT_PRE_ITERS", "0")  # they would drop the broadcast
    monkeypatch.setenv("GPTRS_OPT_POST_ITERS", "0")

    @ptir.jit
    def twice(x: Any, i: Any) -> Any:
        ordered = ptir.broadcast_to(ptir.ops.sort(x)[0], shape=(3,))
        return ptir.dynamic_update_slice(ordered, ordered, (i,))

    x = np.array([3, 1, 2], np.int32)
    np.testing.assert_array_equal(twice(x, np.int32(0)).numpy(), [1, 2, 3])


def test_sizes_that_do_not_fit_are_the_error_of_the_op() -> None:
    @ptir.jit(dynamic={"x": {1: "S"}})
    def pooled(x: Any) -> Any:
        return ptir.reduce_window(x, reduce="add", window=(3,), dilation=(2,)) + 1.0

    assert pooled(np.ones((1, 9, 2), np.float32)).shape == (1, 5, 2)
    for _ in range(2):
        with pytest.raises(ElementError, match="window"):
            pooled(np.ones((1, 2, 2), np.float32))
    assert pooled(np.ones((1, 6, 2), np.float32)).shape == (1, 2, 2)


@pytest.mark.parametrize(
    ("threads", "extent", "time", "chunks"),
    [
        *((2, 14, 1e9, 14), (2, 16, 1e9, 16), (2, 17, 1e9, 8), (2, 14, 2e4, 5), (2, 14, 1e3, 1)),
        *((1, 14, 1e9, 1), (4, 30, 1e9, 30), (4, 400, 1e9, 16), (2, 3, 1e9, 3)),
    ],
)
def test_pieces_of_a_step(threads: int, extent: int, time: float, chunks: int) -> None:
    """Few items are a piece each, so that threads get equally many; short steps have fewer."""
    builder = TemplateBuilder(isa.current(), threads, 0, Sizes({}), (), (), False)
    kernel = compile_ir(COUNT_IR, "count")
    builder.step(kernel, [], extent, time)
    assert [step.chunks for step in builder.template.steps or ()] == [chunks]


@pytest.mark.parametrize(
    ("threads", "extent", "grain", "chunks"),
    [(2, 8, 1, 8), (2, 8, 8, 2), (2, 32, 8, 4), (2, 800, 8, 8), (4, 8, 8, 4), (4, 3, 8, 3)],
)
def test_pieces_are_no_smaller_than_what_is_computed_together(
    threads: int, extent: int, grain: int, chunks: int
) -> None:
    """Unless a thread would have nothing to do."""
    assert chunk_count(threads, extent, 1e9, grain) == chunks


def test_uneven_items_are_cut_into_more_chunks() -> None:
    assert [chunk_count(2, 100, 1e9, uneven=each) for each in (False, True)] == [8, 32]
    assert [chunk_count(2, 100, 40_000.0, uneven=each) for each in (False, True)] == [8, 10]
    assert chunk_count(1, 100, 1e9, uneven=True) == 1
