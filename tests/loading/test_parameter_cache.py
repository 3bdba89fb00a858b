"""The cache of packed weights: listed, limited, released, and packed again."""

from __future__ import annotations

import gc
import json
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import parameter_cache, ptir
from gptrs.errors import ArgumentError, SettingError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, f32
from gptrs.loading.random_model import write_random_model
from tests.support.image_models import RESNET, images
from tests.support.models import random_tokens

TOKENS = random_tokens(2, 6)
SIZE = 64
FORM = 4 * SIZE * SIZE  # bytes of a packed weight of `Source`


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    gc.collect()
    parameter_cache.release()
    assert parameter_cache.info().bytes == 0
    yield
    parameter_cache.limit = None


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("resnet")
    (place / "config.json").write_text(json.dumps({"model_type": "resnet", **RESNET}))
    write_random_model(place / "config.json", place / "model")
    return place / "model"


class Source:
    """Gives a weight, and counts how often. ``before`` is called first."""

    def __init__(self, seed: int, size: int = SIZE) -> None:
        self.loads = 0
        self._seed, self._size = seed, size

    def before(self) -> None:
        pass

    def load(self, name: str) -> Array:
        self.before()
        self.loads += 1
        return np.random.default_rng(self._seed).standard_normal((self._size,) * 2, np.float32)

    def parameter(self, name: str) -> Parameter:
        return Parameter.from_source(name, Type((self._size, self._size), f32), self)


@ptir.jit(backend="faer")
def product(x: Any, weight: Any) -> Tensor:
    return x @ weight


def run(weight: Parameter, rows: int = 1) -> bytes:
    """The product with ``rows`` ones, of which each number is a plan of its own."""
    return product(np.ones((rows, int(weight.shape[0])), np.float32), weight).numpy().tobytes()


def bits(model: Any) -> bytes:
    return model.forward(TOKENS).numpy().tobytes()


class TestForms:
    @pytest.mark.slow
    def test_they_are_what_the_plan_says(self, good: Path) -> None:
        model = gptrs.load(good)
        bits(model)
        estimate = model.memory().at(context=6, batch=2)
        forms = parameter_cache.forms()
        stored = sum(form.bytes for form in forms if form.form == "as stored")
        assert estimate.weights == stored > 0
        assert estimate.packed == sum(form.bytes for form in forms) - stored > 0
        assert {form.name for form in forms} <= set(model.parameters())
        assert all(form.uses == 1 for form in forms)
        assert [form.bytes for form in forms] == sorted((f.bytes for f in forms), reverse=True)

    @pytest.mark.slow
    def test_derived_ones_are_what_the_plan_says(self, resnet: Path) -> None:
        model = gptrs.load(resnet)
        model.forward(images(1, 224, 224))
        estimate = model.memory().at()
        forms = parameter_cache.forms()
        assert {form.form for form in forms} >= {"derived", "derived, packed"}
        assert estimate.weights + estimate.packed == sum(form.bytes for form in forms)

    @pytest.mark.slow
    @pytest.mark.usefixtures("reference")
    def test_derived_ones_of_another_backend(self) -> None:
        a, b = (Source(seed).parameter(f"w{seed}") for seed in (1, 2))

        @ptir.jit
        def f(x: Any) -> Tensor:
            return x @ (a * b)

        before = f(np.ones((1, SIZE), np.float32)).numpy()
        (form,) = parameter_cache.forms()
        assert (form.form, form.bytes) == ("derived", FORM)
        assert parameter_cache.release() == FORM
        assert f(np.ones((1, SIZE), np.float32)).numpy().tobytes() == before.tobytes()

    @pytest.mark.slow
    def test_they_go_with_the_model(self, good: Path) -> None:
        model = gptrs.load(good)
        bits(model)
        kept = gptrs.load(good)
        bits(kept)
        both = parameter_cache.info().bytes
        del model
        gc.collect()
        assert parameter_cache.info().bytes == both // 2

    @pytest.mark.slow
    def test_one_that_is_replaced_goes(self) -> None:
        source = Source(1)
        weight = source.parameter("w")
        run(weight)
        assert [form.name for form in parameter_cache.forms()] == ["w"]
        gone = weakref.ref(weight)
        del weight
        gc.collect()
        assert gone() is None
        assert parameter_cache.forms() == []

    @pytest.mark.slow
    def test_the_text(self, good: Path) -> None:
        assert repr(parameter_cache).startswith("ParameterCache(0 forms, 0 B, no limit; ")
        model = gptrs.load(good)
        bits(model)
        first, head, largest, *_, last = str(parameter_cache).splitlines()
        assert first == repr(parameter_cache)
        assert head.split() == ["parameter", "form", "size", "uses"]
        assert largest.split()[0] == parameter_cache.forms()[0].name
        assert last.startswith(f"  and {len(parameter_cache.forms()) - 20} more of ")


class TestStatistics:
    def test_hits_and_misses(self) -> None:
        source = Source(1)
        weight = source.parameter("w")
        before = parameter_cache.info()
        run(weight)
        run(weight)  # does not ask
        info = parameter_cache.info()
        assert (info.hits - before.hits, info.misses - before.misses) == (0, 1)
        product(np.ones((2, SIZE), np.float32), weight)  # another plan
        info = parameter_cache.info()
        assert (info.hits - before.hits, info.misses - before.misses) == (1, 1)
        assert (info.entries, info.bytes, info.limit) == (1, FORM, None)
        assert parameter_cache.forms()[0].uses == 2
        assert source.loads == 1


class TestRelease:
    @pytest.mark.slow
    def test_all_is_made_again_with_the_same_bits(self, good: Path) -> None:
        model = gptrs.load(good)
        before = bits(model)
        held = parameter_cache.info()
        assert parameter_cache.release() == held.bytes > 0
        assert parameter_cache.info().entries == 0
        assert not any(parameter.in_memory for parameter in model.parameters().values())
        assert bits(model) == before
        after = parameter_cache.info()
        assert (after.entries, after.bytes) == (held.entries, held.bytes)
        assert after.misses == held.misses + held.entries
        assert after.evictions == held.evictions

    @pytest.mark.slow
    def test_of_one_model(self, good: Path, resnet: Path) -> None:
        text, classifier = gptrs.load(good), gptrs.load(resnet)
        x = images(1, 40, 48)
        before = bits(text)
        half = parameter_cache.info().bytes
        labels = classifier.forward(x).numpy().tobytes()
        both = parameter_cache.info()
        assert parameter_cache.release(classifier) == both.bytes - half > 0
        assert parameter_cache.info().bytes == half
        assert bits(text) == before
        assert parameter_cache.info().misses == both.misses
        assert classifier.forward(x).numpy().tobytes() == labels
        assert parameter_cache.release(text.module) == half

    @pytest.mark.slow
    def test_what_others_loaded(self, good: Path) -> None:
        model = gptrs.load(good)
        weight = model.parameters()["wte.weight"]
        weight.numpy()
        parameter_cache.release(model)
        assert not weight.in_memory

    @pytest.mark.slow
    def test_memory_goes_back_to_the_system(self) -> None:
        weight = Source(1, 4096).parameter("w")
        expected = run(weight)
        before, held = resident(), parameter_cache.info().bytes
        assert held > 0.85 * 2**26  # 28 of 32 bits
        assert parameter_cache.release() == held
        assert before - resident() > 0.95 * held
        assert run(weight) == expected

    @pytest.mark.slow
    def test_weights_that_cannot_be_read_again_stay(self) -> None:
        weight = Parameter(np.eye(SIZE, dtype=np.float32), "w")
        before = run(weight)
        assert parameter_cache.release() == FORM  # the packed form
        assert run(weight) == before


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class TestLimit:
    @pytest.mark.slow
    def test_the_least_recently_used_goes_first(self) -> None:
        sources = [Source(seed) for seed in range(3)]
        weights = [source.parameter(f"w{n}") for n, source in enumerate(sources)]
        expected = [run(weight, rows) for rows, weight in enumerate(weights, 1)]
        parameter_cache.release()
        parameter_cache.limit = 2 * FORM
        evicted = parameter_cache.info().evictions
        for number in (0, 1, 0):  # the last does not ask the cache, and counts as a use
            assert run(weights[number], number + 1) == expected[number]
        assert {form.name: form.uses for form in parameter_cache.forms()} == {"w0": 2, "w1": 2}
        assert parameter_cache.info().evictions == evicted
        assert run(weights[2], 3) == expected[2]
        assert {form.name for form in parameter_cache.forms()} == {"w0", "w2"}
        assert parameter_cache.info().evictions == evicted + 1
        for number in (1, 0, 2, 1):
            assert run(weights[number], number + 1) == expected[number]
            assert parameter_cache.info().bytes <= 2 * FORM

    @pytest.mark.slow
    def test_several_models(self, good: Path) -> None:
        models = [gptrs.load(good) for _ in range(3)]
        expected = bits(models[0])
        parameter_cache.limit = parameter_cache.info().bytes * 3 // 2
        for model in [*models, *models]:
            assert bits(model) == expected
            assert parameter_cache.info().bytes <= (parameter_cache.limit or 0)

    @pytest.mark.slow
    def test_a_lower_one_holds_at_once(self) -> None:
        weights = [Source(seed).parameter(f"w{seed}") for seed in range(3)]
        expected = [run(weight) for weight in weights]
        parameter_cache.limit = FORM
        assert [form.name for form in parameter_cache.forms()] == ["w2"]
        parameter_cache.limit = 0
        assert parameter_cache.forms() == []
        assert [run(weight) for weight in weights] == expected

    @pytest.mark.slow
    def test_a_plan_gets_what_it_needs(self, good: Path) -> None:
        model = gptrs.load(good)
        parameter_cache.limit = "1kB"
        before = bits(model)
        info = parameter_cache.info()
        assert info.bytes > 1000
        assert bits(model) == before
        assert parameter_cache.info().misses == info.misses, "it is not made in every call"

    @pytest.mark.slow
    def test_the_setting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GPTRS_PARAMETER_CACHE_BYTES", str(FORM))
        weights = [Source(seed).parameter(f"w{seed}") for seed in range(2)]
        for weight in weights:
            run(weight)
        assert parameter_cache.info().limit == FORM
        assert [form.name for form in parameter_cache.forms()] == ["w1"]
        parameter_cache.limit = "2 MiB"
        assert parameter_cache.limit == 2**21
        parameter_cache.limit = None
        monkeypatch.setenv("GPTRS_PARAMETER_CACHE_BYTES", "-2")
        with pytest.raises(SettingError):
            _ = parameter_cache.limit
        monkeypatch.delenv("GPTRS_PARAMETER_CACHE_BYTES")

    @pytest.mark.slow
    @pytest.mark.parametrize("limit", ["much", -1, 1.5, True, "0"])
    def test_what_is_none(self, limit: Any) -> None:
        with pytest.raises(ArgumentError, match="the limit of the parameter cache is") as raised:
            parameter_cache.limit = limit
        assert raised.value.fix


class TestRunning:
    @pytest.mark.slow
    def test_what_a_run_uses_stays(self) -> None:
        sources = [Source(seed) for seed in range(2)]
        a, b = (source.parameter(f"w{n}") for n, source in enumerate(sources))
        released: list[int] = []
        for source in sources:  # when the second is read, the first is there, and in use
            source.before = lambda: released.append(parameter_cache.release())

        @ptir.jit(backend="faer")
        def f(x: Any) -> Tensor:
            return x @ a @ b

        x = np.ones((1, SIZE), np.float32)
        expected = x @ sources[0].load("w0") @ sources[1].load("w1")
        np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-4, atol=1e-4)
        assert parameter_cache.info().bytes == 2 * FORM
        assert set(released) == {0}
        assert parameter_cache.release() == 2 * FORM

    @pytest.mark.slow
    def test_a_read_that_fails(self) -> None:
        source = Source(1)
        weight = source.parameter("w")

        def fail() -> None:
            raise ArgumentError("no")

        source.before = fail
        with pytest.raises(ArgumentError, match="no"):
            run(weight)
        assert parameter_cache.info().bytes == 0
        source.before = lambda: None
        assert run(weight) == run(weight)
        assert parameter_cache.release() == FORM

    @pytest.mark.slow
    @pytest.mark.parametrize("limit", [None, 0])
    def test_threads(self, good: Path, limit: int | None) -> None:
        """Calls in four threads, while a fifth takes away whatever it can."""
        models = [gptrs.load(good) for _ in range(2)]
        expected = bits(models[0])
        parameter_cache.limit = limit
        wrong: list[bytes] = []
        done = threading.Event()

        def call(number: int) -> None:
            for _ in range(30):
                found = bits(models[number % 2])
                if found != expected:
                    wrong.append(found)

        def release() -> None:
            while not done.is_set():
                parameter_cache.release()

        callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
        thief = threading.Thread(target=release)
        for thread in (*callers, thief):
            thread.start()
        for thread in callers:
            thread.join()
        done.set()
        thief.join()
        assert wrong == []
        parameter_cache.release()
        assert parameter_cache.info().bytes == 0
