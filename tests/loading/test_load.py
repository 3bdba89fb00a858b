"""Opening model directories: which weights are read and when, and arguments of `forward`."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import events
from gptrs.backends.faer import run, weight_packing
from gptrs.errors import ArgumentError, LoadError
from gptrs.loading.language_model import LanguageModel
from gptrs.loading.weights import WeightRead, WeightsOpened
from tests.support.loading import WEIGHTS, refusal
from tests.support.models import (
    DTYPES,
    END_ID,
    VOCABULARY,
    config,
    load_arrays,
    random_tokens,
    save_arrays,
    tensors,
    tiny_gpt2,
)

TOKENS = [1, 2, 3]


@pytest.fixture(scope="module")
def model(good: Path) -> LanguageModel:
    return gptrs.load(good)


class TestReadingWhenNeeded:
    def test_loading_reads_no_weight(self, good: Path) -> None:
        heard: list[object] = []
        with events.listen(heard.append):
            model = gptrs.load(good)
            size = sum(a.nbytes for a in load_arrays(good / WEIGHTS).values())
            assert heard == [WeightsOpened(len(model.module.parameters()), size)]
            heard.clear()
            model.module.wpe.weight.numpy()
            model.module.wpe.weight.numpy()
        assert heard == [WeightRead("wpe.weight", 48 * 32 * 4)]

    def test_running_reads_each_weight_once(self, good: Path) -> None:
        heard: list[object] = []
        with events.listen(heard.append):
            model = gptrs.load(good)
            model.forward(TOKENS)
            model.forward(TOKENS)
        read = [event.name for event in heard if isinstance(event, WeightRead)]
        assert sorted(read) == sorted(model.module.parameters())

    def test_parameters_are_named_as_in_the_checkpoint(self, good: Path) -> None:
        assert set(gptrs.load(good).module.parameters()) == set(tensors(config()))

    def test_a_tied_head_is_one_parameter(self, good: Path) -> None:
        module = gptrs.load(good).module
        assert module.lm_head.weight is module.wte.weight

    def test_the_tokenizer_is_not_needed_for_logits(self, directory: Path) -> None:
        (directory / "tokenizer.json").unlink()
        assert gptrs.load(directory).forward(TOKENS).shape == (3, VOCABULARY)

    def test_a_string_or_a_path_opens_a_directory(self, good: Path) -> None:
        assert gptrs.load(str(good)).config == gptrs.load(good).config
        assert repr(gptrs.load(good)).startswith("<gpt2 good")

    def test_links_are_followed(self, good: Path, tmp_path: Path) -> None:
        for file in good.iterdir():  # as the cache of Hugging Face's hub stores a model
            (tmp_path / file.name).symlink_to(file)
        assert gptrs.load(tmp_path).forward(TOKENS).shape == (3, VOCABULARY)


class TestReading:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_the_elements_are_those_of_the_file(self, tmp_path: Path, dtype: str) -> None:
        model = gptrs.load(tiny_gpt2(tmp_path, dtype))
        for name, expected in load_arrays(tmp_path / WEIGHTS).items():
            parameter = model.module.parameters()[name.removeprefix("transformer.")]
            assert parameter.dtype.name == dtype
            assert parameter.numpy().dtype == expected.dtype
            assert parameter.numpy().tobytes() == expected.tobytes()

    def test_rows_are_read_by_themselves(self, good: Path) -> None:
        expected = load_arrays(good / WEIGHTS)["transformer.wte.weight"]
        weight = gptrs.load(good).module.wte.weight
        read: list[int] = []
        with events.listen(lambda e: read.append(e.size) if isinstance(e, WeightRead) else None):
            for first, last in ((0, 3), (5, 5), (7, VOCABULARY + 9), (VOCABULARY, 99)):
                np.testing.assert_array_equal(weight.rows(first, last), expected[first:last])
        assert sum(read) == expected[:3].nbytes + expected[7:].nbytes
        whole = weight.numpy()
        assert np.may_share_memory(weight.rows(1, 4), whole), "what is there is not read again"

    def test_a_weight_is_packed_in_pieces(
        self, good: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = gptrs.load(good).forward(TOKENS).numpy()
        monkeypatch.setattr(weight_packing, "READ_BYTES", 100)
        monkeypatch.setattr(run, "_WORTH_THREADS", 0)
        read: list[WeightRead] = []
        with events.listen(lambda e: read.append(e) if isinstance(e, WeightRead) else None):
            found = gptrs.load(good).forward(TOKENS).numpy()
        assert found.tobytes() == expected.tobytes()
        for name in ("wte.weight", "h.0.attn.c_attn.weight"):
            assert len([each for each in read if each.name == name]) > 1

    def test_several_threads_read_at_the_same_time(self, good: Path) -> None:
        expected = load_arrays(good / WEIGHTS)
        with ThreadPoolExecutor(8) as pool:
            for _ in range(20):
                parameters = gptrs.load(good).module.parameters()
                arrays = pool.map(gptrs.Parameter.numpy, [*parameters.values()] * 2)
                for name, array in zip([*parameters] * 2, arrays, strict=True):
                    np.testing.assert_array_equal(array, expected[f"transformer.{name}"])

    @pytest.mark.skipif(sys.platform == "win32", reason="reads in another way there")
    def test_a_system_that_reads_a_little_at_a_time(
        self, good: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read = os.preadv

        def read_little(descriptor: int, parts: list[memoryview], offset: int) -> int:
            return read(descriptor, [parts[0][:1001]], offset)

        monkeypatch.setattr(os, "preadv", read_little)
        weight = gptrs.load(good).module.wte.weight.numpy()
        expected = load_arrays(good / WEIGHTS)["transformer.wte.weight"]
        np.testing.assert_array_equal(weight, expected)

    @pytest.mark.skipif(sys.platform == "win32", reason="reads in another way there")
    def test_a_disk_that_fails(self, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> int:
            raise OSError("no such sector")

        model = gptrs.load(good)
        monkeypatch.setattr(os, "preadv", fail)
        message = "safetensors: 'transformer.wte.weight' cannot be read: no such sector"
        with pytest.raises(LoadError, match=message):
            model.forward(TOKENS)

    @pytest.mark.skipif(sys.platform == "win32", reason="open files stay where they are there")
    def test_a_file_that_is_replaced_after_it_was_opened(self, directory: Path) -> None:
        model = gptrs.load(directory)
        expected = load_arrays(directory / WEIGHTS)["transformer.ln_f.bias"]
        save_arrays({"other": np.zeros(3)}, directory / "new")
        (directory / "new").replace(directory / WEIGHTS)
        np.testing.assert_array_equal(model.module.ln_f.bias.numpy(), expected)

    @pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
    def test_nothing_of_the_file_is_mapped(self, good: Path) -> None:
        model = gptrs.load(good)
        model.forward(TOKENS)
        assert WEIGHTS not in Path("/proc/self/maps").read_text()

    @pytest.mark.slow
    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
    def test_the_file_is_closed_with_its_model(self, directory: Path) -> None:
        def is_open() -> bool:
            links = [Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
            return directory / WEIGHTS in [link.readlink() for link in links if link.is_symlink()]

        model = gptrs.load(directory)
        assert is_open()
        del model
        gc.collect()
        assert not is_open()
        (directory / WEIGHTS).write_bytes(b"")
        refusal(directory, "no complete safetensors file")
        gc.collect()  # the error's traceback holds the file
        assert not is_open()


class TestRelease:
    def test_the_elements_are_freed_and_come_again(self, good: Path) -> None:
        weight = gptrs.load(good).module.wpe.weight
        heard: list[object] = []
        with events.listen(heard.append):
            array = weight.numpy()
            bits, freed = array.tobytes(), weakref.ref(array)
            del array
            assert freed() is not None
            weight.release()
            assert freed() is None
            weight.release()
            assert weight.numpy().tobytes() == bits
        assert heard == [WeightRead("wpe.weight", len(bits))] * 2

    def test_what_has_no_source_keeps_its_elements(self) -> None:
        array = np.ones(3, np.float32)
        parameter = gptrs.Parameter(array)
        parameter.release()
        assert parameter.numpy() is array

    def test_while_others_read(self, good: Path) -> None:
        weight = gptrs.load(good).module.ln_f.bias
        expected = weight.numpy()

        def read(_: int) -> bool:
            weight.release()
            return bool((weight.numpy() == expected).all())

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(read, range(500)))


class TestForward:
    def test_one_text_or_several(self, model: LanguageModel) -> None:
        tokens = random_tokens(2, 5)
        both = model.forward(tokens).numpy()
        assert both.shape == (2, 5, VOCABULARY)
        for made in (np.array, np.int32, np.uint8, list[Any], tuple[Any, ...]):
            one = model.forward(made(tokens[1] % 200)).numpy()
            assert one.shape == (5, VOCABULARY)

    @pytest.mark.parametrize(
        ("tokens", "said"),
        [
            ([], "at least one token"),
            (np.zeros((0, 3), np.int64), "at least one token"),
            ([[1, 2], [3]], "rows of different lengths"),
            (3, "expected integers"),
            ("text", "expected integers"),
            (None, "expected integers"),
            ([1.0], "expected integers"),
            (np.zeros((1, 1, 1), np.int64), "expected integers"),
            ([1, VOCABULARY], f"hold {VOCABULARY}, expected ids from 0 to {END_ID}"),
            ([[-1]], "hold -1"),
            ([0] * 49, "49 tokens do not fit the context of 48"),
        ],
        ids=lambda value: str(value)[:20],
    )
    def test_what_are_no_tokens(self, model: LanguageModel, tokens: object, said: str) -> None:
        with pytest.raises(ArgumentError, match=said):
            model.forward(tokens)


class Bytes(os.PathLike[Any]):
    def __fspath__(self) -> bytes:
        return b"stories"


PLACES: dict[str, tuple[Any, str]] = {
    "long": ("x" * 5000, "x cannot be opened: "),
    "long of the hub": ("a/" + "x" * 5000, "x cannot be opened: "),
    "long folder": (Path("x" * 300) / "b", "/b cannot be opened: "),
    "bytes": (b"stories", "the model is a bytes, expected a path or a name"),
    "path of bytes": (Bytes(), "the model is a Bytes, expected a path or a name"),
    "number": (5, "the model is a int, expected a path or a name"),
    "zero byte": ("a\0b", r"there is no model directory 'a\x00b'"),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("opened", [gptrs.load, gptrs.estimate_memory])
def test_what_is_no_place_of_a_model(name: str, opened: Callable[[Any], Any]) -> None:
    place, said = PLACES[name]
    with pytest.raises(gptrs.PtirError) as found:
        opened(place)
    assert said in found.value.problem
    assert len(str(found.value)) < 1500
    assert found.value.fix
