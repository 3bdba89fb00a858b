"""Opening model directories: what is read when, and how the bad ones are refused."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gptrs
from gptrs import events
from gptrs.backends.faer import parameters, run
from gptrs.errors import ArgumentError, LoadError
from gptrs.runtime.language import LanguageModel
from gptrs.runtime.weights import WeightRead, WeightsOpened
from tests.models import (
    DTYPES,
    END_ID,
    VOCABULARY,
    byte_tokenizer,
    config,
    in_files,
    load_arrays,
    random_tokens,
    save_arrays,
    tensors,
    tiny_gpt2,
    write,
)

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENS = [1, 2, 3]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gpt2(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def model(good: Path) -> LanguageModel:
    return gptrs.load(good)


@pytest.fixture
def directory(good: Path, tmp_path: Path) -> Path:
    """A copy of a good directory, to be spoilt."""
    return shutil.copytree(good, tmp_path / "model")


def refusal(path: Path, *expected: str, use: Callable[[LanguageModel], object] = id) -> LoadError:
    """The error of loading ``path`` and using the model, whose text holds all that is expected."""
    with pytest.raises(LoadError) as caught:
        use(gptrs.load(path))
    for part in (str(path), *expected):
        assert part in str(caught.value)
    assert caught.value.__cause__ is None
    assert "\n" not in caught.value.problem
    return caught.value


def change_config(directory: Path, **fields: Any) -> None:
    file = directory / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def change_tensors(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    arrays = load_arrays(directory / WEIGHTS)
    change(arrays)
    save_arrays(arrays, directory / WEIGHTS)


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
        monkeypatch.setattr(parameters, "_READ_BYTES", 100)
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


class TestConfig:
    def test_no_directory(self, tmp_path: Path) -> None:
        refusal(tmp_path / "nowhere", "no model directory", "stories")
        file = tmp_path / "file"
        file.write_text("")
        refusal(file, "no model directory")

    def test_an_empty_directory(self, tmp_path: Path) -> None:
        refusal(tmp_path, "config.json does not exist", "incomplete")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (b"", "is not JSON"),
            (b'{"model_type": ', "is not JSON"),
            (b"[]", "holds a list, expected an object"),
            (b'"gpt2"', "holds a str, expected an object"),
            (b"\xff\xfe", "cannot be read"),
            (b"[" * 100_000, "is not JSON"),
            (b'{"n_embd": ' + b"9" * 5000 + b"}", "is not JSON"),
        ],
        ids=["empty", "cut", "list", "string", "bytes", "deep", "long number"],
    )
    def test_no_json(self, directory: Path, text: bytes, said: str) -> None:
        (directory / "config.json").write_bytes(text)
        refusal(directory, "config.json", said)

    @pytest.mark.parametrize("kind", [None, "llama9", ["gpt2"], 2])
    def test_unknown_model_type(self, directory: Path, kind: object) -> None:
        change_config(directory, model_type=kind)
        refusal(directory, "config.json", f"model_type is {kind!r}", "expected one of gpt2")

    @pytest.mark.parametrize(
        ("field", "value", "expected"),
        [
            ("n_embd", "32", "expected int"),
            ("n_embd", 32.0, "expected int"),
            ("n_layer", True, "expected int"),
            ("n_layer", None, "expected int"),
            ("n_layer", 0, "at least 1"),
            ("n_head", -4, "at least 1"),
            ("n_head", 5, "not a multiple"),
            ("n_inner", "128", "expected int or null"),
            ("n_inner", 0, "at least 1"),
            ("vocab_size", [262], "expected int"),
            ("layer_norm_epsilon", "1e-5", "expected float"),
            ("layer_norm_epsilon", float("nan"), "finite number"),
            ("layer_norm_epsilon", -1, "finite number"),
            ("scale_attn_weights", 1, "expected bool"),
            ("tie_word_embeddings", "yes", "expected bool"),
            ("activation_function", "gelu_2027", "expected one of gelu, gelu_new"),
            ("activation_function", None, "expected str"),
            ("add_cross_attention", True, "cross-attention is not supported"),
            ("eos_token_id", "50256", "expected an integer or several"),
            ("eos_token_id", [1, None], "expected an integer or several"),
            ("bos_token_id", 1.5, "expected an integer or null"),
        ],
        ids=lambda value: str(value),
    )
    def test_bad_fields(self, directory: Path, field: str, value: object, expected: str) -> None:
        change_config(directory, **{field: value})
        refusal(directory, "config.json", field, expected)

    def test_a_bad_generation_config(self, directory: Path) -> None:
        (directory / "generation_config.json").write_text('{"eos_token_id": "end"}')
        refusal(directory, "generation_config.json", "eos_token_id is 'end'")

    def test_a_field_is_named_as_it_was_written(self, directory: Path) -> None:
        settings = config(hidden_size="32")
        del settings["n_embd"]
        (directory / "config.json").write_text(json.dumps(settings))
        refusal(directory, "hidden_size is '32', expected int")

    def test_an_old_config_with_n_ctx(self, directory: Path) -> None:
        settings = config(n_ctx=48)
        del settings["n_positions"]
        (directory / "config.json").write_text(json.dumps(settings))
        assert gptrs.load(directory).module.context_length == 48

    def test_unknown_fields_do_not_matter(self, directory: Path) -> None:
        change_config(directory, n_ctx="x", summary_type=3, transformers_version=None)
        assert gptrs.load(directory).config.n_positions == 48


class TestWeights:
    def test_no_weights(self, directory: Path) -> None:
        (directory / WEIGHTS).unlink()
        refusal(directory, "has no weights", WEIGHTS, INDEX)

    def test_a_pickle_is_never_opened(self, directory: Path) -> None:
        (directory / WEIGHTS).rename(directory / "pytorch_model.bin")
        refusal(directory, "pytorch_model.bin", "pickle", "safe_serialization")

    @pytest.mark.parametrize("kept", [0, 7, 8, 100, -1], ids=str)
    def test_cut_short(self, directory: Path, kept: int) -> None:
        file = directory / WEIGHTS
        file.write_bytes(file.read_bytes()[:kept])
        refusal(directory, f"{WEIGHTS} is no complete safetensors file", "download")

    def test_cut_short_after_it_was_opened(self, directory: Path) -> None:
        model = gptrs.load(directory)
        with (directory / WEIGHTS).open("r+b") as file:
            file.truncate(5000)
        with pytest.raises(LoadError, match="5000 bytes, it had"):
            model.forward(TOKENS)

    @pytest.mark.parametrize(
        "header",
        [
            b"not json",
            b'{"wte.weight": {}}',
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,400]}}',
            b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,8]}}',
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}',
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}',
            b'{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}',
            b'{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}',
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
            b'"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}',
            b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},'
            b'"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}',
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
            b'"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}',
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
            b'{"a":{"dtype":"F31","shape":[3],"data_offsets":[0,12]}}',
            b'{"a":{"dtype":"F32","shape":[3.0],"data_offsets":[0,12]}}',
            b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0]}}',
            b'{"a":{"dtype":"F32","shape":[3]}}',
            b'{"\xff":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}',
            b'{"a":' * 10**5,
            b'[{"dtype":"F32","shape":[3],"data_offsets":[0,12]}]',
        ],
        ids=[
            *("no JSON", "empty", "outside", "size", "hole", "order", "negative", "huge"),
            *("overlap", "twice", "hole between", "bytes left", "dtype", "float", "one offset"),
            *("no offsets", "no UTF-8", "deep", "list"),
        ],
    )
    def test_hostile_headers(self, directory: Path, header: bytes) -> None:
        (directory / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header + bytes(12))
        refusal(directory, WEIGHTS, "no complete safetensors file")

    @pytest.mark.parametrize("length", [1 << 20, 1 << 63, (1 << 64) - 1])
    def test_a_header_longer_than_the_file(self, directory: Path, length: int) -> None:
        (directory / WEIGHTS).write_bytes(length.to_bytes(8, "little") + b"{}")
        refusal(directory, WEIGHTS, f"header_len is {length}, expected at most 2")

    def test_a_header_longer_than_headers_are(self, directory: Path) -> None:
        with (directory / WEIGHTS).open("wb") as file:
            file.write((2 * 10**8).to_bytes(8, "little"))
            file.truncate(3 * 10**8)  # it takes no room on the disk
        tracemalloc.start()
        refusal(directory, WEIGHTS, "header_len is 200000000, expected at most 100000000")
        assert tracemalloc.get_traced_memory()[1] < 10**6
        tracemalloc.stop()

    @pytest.mark.parametrize("shape", [[0] * 65, [0, 2**60], [2**63, 0]], ids=str)
    def test_shapes_that_no_array_has(self, directory: Path, shape: list[int]) -> None:
        entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
        header = json.dumps({"transformer.ln_f.bias": entry}).encode()
        (directory / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header)
        refusal(directory, WEIGHTS, "expected at most 64 axes")

    def test_a_name_that_is_there_twice_is_named(self, directory: Path) -> None:
        entry = b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
        header = b"{" + entry + b"," + entry + b"}"
        (directory / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
        refusal(directory, WEIGHTS, "the name 'a' is there twice, expected once")

    def test_a_missing_tensor(self, directory: Path) -> None:
        change_tensors(directory, lambda arrays: arrays.pop("transformer.h.1.ln_2.bias"))
        refusal(directory, WEIGHTS, "no tensor 'h.1.ln_2.bias' [32]", "27 tensors", "config.json")

    def test_fewer_layers_than_configured(self, directory: Path) -> None:
        change_config(directory, n_layer=1_000_000_000)
        refusal(directory, "no tensor 'h.2.attn.c_attn.weight'")

    def test_a_missing_head(self, directory: Path) -> None:
        change_config(directory, tie_word_embeddings=False)
        refusal(directory, "no tensor 'lm_head.weight'")

    def test_extra_tensors(self, directory: Path) -> None:
        change_config(directory, n_layer=1)
        refusal(directory, "no place for tensor 'transformer.h.1.", "and 11 more", "config.json")

    def test_a_wrong_shape(self, directory: Path) -> None:
        change_config(directory, n_positions=1024)
        refusal(directory, "'transformer.wpe.weight'", "[48,32]", "[1024,32]", "config.json")

    @pytest.mark.parametrize(
        ("dtype", "name"),
        [(np.float64, "F64"), (np.int8, "I8"), (np.bool_, "BOOL"), (ml_dtypes.float8_e5m2, "F8")],
    )
    def test_an_unknown_dtype(self, directory: Path, dtype: Any, name: str) -> None:
        change_tensors(
            directory,
            lambda arrays: arrays.update({"transformer.ln_f.bias": np.zeros(32, dtype)}),
        )
        refusal(directory, "'transformer.ln_f.bias'", f"dtype {name}", "f32, f16, bf16")

    def test_one_tensor_twice(self, directory: Path) -> None:
        change_tensors(directory, lambda arrays: arrays.update({"wpe.weight": np.zeros(2)}))
        refusal(directory, "'wpe.weight'", "'transformer.wpe.weight'")

    def test_a_head_that_is_no_copy(self, directory: Path) -> None:
        head = np.zeros((VOCABULARY, 32), np.float32)
        change_tensors(directory, lambda arrays: arrays.update({"lm_head.weight": head}))
        refusal(
            directory,
            *("'lm_head.weight' differs from 'transformer.wte.weight'", "tie_word_embeddings"),
            use=lambda model: model.forward(TOKENS),
        )


class TestShards:
    @pytest.fixture
    def sharded(self, tmp_path: Path) -> Path:
        return write(tmp_path, config(), in_files(tensors(config())), shards=2)

    def change_index(self, directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
        index = json.loads((directory / INDEX).read_text())
        change(index)
        (directory / INDEX).write_text(json.dumps(index))

    def test_a_missing_shard(self, sharded: Path) -> None:
        (sharded / "model-00002-of-00002.safetensors").unlink()
        refusal(sharded, "model-00002-of-00002.safetensors does not exist", "download")

    def test_a_shard_that_is_cut_short(self, sharded: Path) -> None:
        file = sharded / "model-00002-of-00002.safetensors"
        file.write_bytes(file.read_bytes()[:-1])
        refusal(sharded, "model-00002-of-00002.safetensors is no complete")

    def test_a_tensor_that_is_not_where_the_index_says(self, sharded: Path) -> None:
        (sharded / "model-00002-of-00002.safetensors").write_bytes(
            (sharded / "model-00001-of-00002.safetensors").read_bytes()
        )
        refusal(sharded, "model-00002-of-00002.safetensors has no tensor", INDEX)

    def test_a_tensor_that_the_index_lacks(self, sharded: Path) -> None:
        self.change_index(sharded, lambda index: index["weight_map"].pop("transformer.wpe.weight"))
        refusal(sharded, f"{INDEX} has no tensor 'wpe.weight'")

    @pytest.mark.parametrize(
        "place",
        [
            *("../good.safetensors", "/etc/passwd", "/good.safetensors", "a/good.safetensors"),
            *("..", ".", "", "a\\good.safetensors", "a\x00.safetensors", "pytorch_model.bin", None),
        ],
    )
    def test_files_outside_the_directory(self, sharded: Path, place: object) -> None:
        self.change_index(sharded, lambda index: index["weight_map"].update(x=place))
        refusal(sharded, INDEX, f"'x' is in {place!r}", "file of this directory")

    @pytest.mark.parametrize("places", [None, {}, [], "model.safetensors"])
    def test_no_weight_map(self, sharded: Path, places: object) -> None:
        self.change_index(sharded, lambda index: index.update(weight_map=places))
        refusal(sharded, INDEX, "weight_map")


class TestNoFiles:
    """What has the name of a file and is none: nothing waits for it, or reads it for ever."""

    @pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes there")
    @pytest.mark.parametrize("put", ["pipe", "directory", "device"])
    @pytest.mark.parametrize(
        "name", ["config.json", "generation_config.json", WEIGHTS, "tokenizer.json"]
    )
    def test_pipes_directories_and_devices(self, directory: Path, name: str, put: str) -> None:
        place = directory / name
        place.unlink(missing_ok=True)
        if put == "pipe":
            os.mkfifo(place)
        elif put == "directory":
            place.mkdir()
        else:
            place.symlink_to("/dev/zero")
        refusal(directory, name, "file", use=lambda model: model.tokenizer)

    def test_a_configuration_that_is_too_long(self, directory: Path) -> None:
        with (directory / "config.json").open("r+b") as file:
            file.truncate(2**27)
        tracemalloc.start()
        refusal(directory, "config.json has 134217728 bytes, expected at most 67108864")
        assert tracemalloc.get_traced_memory()[1] < 10**6
        tracemalloc.stop()

    def test_a_link_to_itself(self, directory: Path) -> None:
        (directory / WEIGHTS).unlink()
        (directory / WEIGHTS).symlink_to(directory / WEIGHTS)
        refusal(directory, WEIGHTS)


class TestTokenizer:
    @pytest.mark.parametrize(
        "text",
        [b"", b"[]", b'"text"', b"\xff\xfe", b"[" * 10**5, b'{"version": "1.0"', b'{"model": {}}'],
        ids=["empty", "list", "text", "bytes", "deep", "cut", "no model"],
    )
    def test_bad_ones(self, directory: Path, text: bytes) -> None:
        (directory / "tokenizer.json").write_bytes(text)
        refusal(directory, "tokenizer.json", "download", use=self.encode)

    def test_one_that_the_library_does_not_foresee(self, directory: Path) -> None:
        model: dict[str, object] = {"type": "BPE", "vocab": {"t": 0, "h": 1, "th": 2}}
        model |= {"merges": [["t", "h"]], "continuing_subword_prefix": "###"}
        (directory / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": model}))
        refusal(directory, "tokenizer.json", "cannot be read", use=self.encode)

    def test_one_that_has_no_token_for_what_it_does_not_know(self, directory: Path) -> None:
        model = {"type": "WordLevel", "vocab": {"one": 0}, "unk_token": "none"}
        (directory / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": model}))
        refusal(directory, "tokenizer.json", "contradict each other", use=self.encode)

    def encode(self, model: LanguageModel) -> object:
        return model.generate("once", max_tokens=1)

    def test_none(self, directory: Path) -> None:
        (directory / "tokenizer.json").unlink()
        refusal(directory, "tokenizer.json", use=self.encode)

    def test_no_tokenizer(self, directory: Path) -> None:
        (directory / "tokenizer.json").write_text("{}")
        refusal(directory, "tokenizer.json", "download", use=self.encode)

    def test_more_tokens_than_the_model(self, directory: Path) -> None:
        large: Any = byte_tokenizer()
        large.add_tokens(["more"])
        large.save(str(directory / "tokenizer.json"))
        sizes = (f"{VOCABULARY + 1} tokens", f"at most {VOCABULARY}")
        refusal(directory, "tokenizer.json", *sizes, "vocab_size", use=self.encode)


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
