"""Memory estimates against measured processes, and the limits that loading enforces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import estimate_memory, events
from gptrs.backends.host import MachineMemory, machine_memory
from gptrs.errors import ArgumentError, LoadError
from gptrs.kernels.compiler import isa
from gptrs.loading.convert import convert
from gptrs.loading.estimate import memory_of
from gptrs.loading.random_model import write_random_model
from gptrs.loading.weights import WeightRead
from gptrs.memory.estimate import RUNTIME_BYTES, MemoryEstimate, ModelMemory
from gptrs.memory.fitting import fit
from gptrs.models import MODELS
from gptrs.text.prefill import CHUNK
from tests.support.image_models import RESNET
from tests.support.models import config

MOST = 1.2
"""Estimates err on the high side: by no more than this factor."""
THREADS = 2

# 76 MB of weights, and a cache of 25 MB at 512 tokens in 2 rows.
GPT2 = {"n_embd": 512, "n_layer": 6, "n_head": 8, "n_positions": 512, "vocab_size": 2000}
# 47 MB of weights, which take 97 MB packed: most are of 3 × 3 convolutions.
RESNET18 = {
    "layer_type": "basic",
    "depths": [2, 2, 2, 2],
    "hidden_sizes": [64, 128, 256, 512],
    "num_labels": 1000,
}

CHILD = """
import sys
from pathlib import Path
import numpy as np
import gptrs
path, size, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
model = gptrs.load(path)
if model.causal_lm is not None:
    prompt = [n % 100 for n in range(size - 1)]
    from gptrs.text.generation import generate_tokens
    from gptrs.text.options import GenerationOptions
    options = GenerationOptions(max_tokens=1)
    list(generate_tokens(model.module, [prompt] * batch, options, eos=None))
else:
    images = np.random.default_rng(0).random((batch, size, size, 3), np.float32)
    model.forward(images)
(line,) = [l for l in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in l]
print(int(line.split()[1]) * 1024, "numba" in sys.modules)
"""


def peak(path: Path, size: int, batch: int) -> tuple[int, bool]:
    """The most resident memory of a process that runs a model once, and whether it compiled."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(size), str(batch)],
        env={**os.environ, "GPTRS_NUM_THREADS": str(THREADS)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    count, compiled = done.stdout.split()
    return int(count), compiled == "True"


def random_model(place: Path, kind: str, fields: dict[str, Any]) -> Path:
    (place / "config.json").write_text(json.dumps({"model_type": kind, **fields}))
    write_random_model(place / "config.json", place / "model")
    return place / "model"


@pytest.fixture(scope="module")
def memory(good: Path) -> ModelMemory:
    return memory_of(good)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
class TestPeaks:
    @pytest.mark.slow
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_text(self, tmp_path: Path, dtype: str) -> None:
        path = random_model(tmp_path, "gpt2", {**GPT2, "torch_dtype": dtype})
        peak(path, 2, 1)  # compiles
        for context, batch in ((512, 2), (16, 1)):
            estimate = estimate_memory(path, context=context, batch=batch, threads=THREADS)
            self.check(estimate, *peak(path, context, batch))

    @pytest.mark.slow
    def test_images(self, tmp_path: Path) -> None:
        path = random_model(tmp_path, "resnet", RESNET18)
        peak(path, 224, 1)  # compiles
        for batch in (1, 4):
            estimate = estimate_memory(path, batch=batch, threads=THREADS)
            assert (
                estimate.packed > 96.5e6
            )  # taps that are transformed, a last layer that is compressed
            assert estimate.loading > 2 * 18.8e6  # of each thread, taps and those of a folded norm
            self.check(estimate, *peak(path, 224, batch))

    @pytest.mark.slow
    def test_small_weights(self, tmp_path: Path) -> None:
        path = random_model(tmp_path, "mobilenet_v2", {"num_labels": 1000})
        peak(path, 224, 1)  # compiles
        self.check(estimate_memory(path, threads=THREADS), *peak(path, 224, 1))

    def check(self, estimate: MemoryEstimate, measured: int, compiled: bool) -> None:
        assert not compiled, "a process that compiles takes more"
        assert measured <= estimate.total <= MOST * measured, f"{measured}\n{estimate}"


class TestEstimates:
    @pytest.mark.slow
    def test_no_weight_is_read(self, good: Path) -> None:
        read: list[WeightRead] = []
        with events.listen(lambda e: read.append(e) if isinstance(e, WeightRead) else None):
            estimate = estimate_memory(good)
            model = gptrs.load(good, memory_limit="1GB")
        assert read == []
        assert not any(parameter.in_memory for parameter in model.parameters().values())
        assert estimate == estimate_memory(model)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", MODELS)
    def test_every_kind_of_model(self, kind: str) -> None:
        memory = memory_of({"model_type": kind})
        estimate = memory.at()
        stored = sum(parameter.bytes for parameter in memory.module.parameters().values())
        held = estimate.weights + estimate.packed
        assert held > (28 / 32 if isa.current().lookup else 1) * 0.98 * stored
        assert (estimate.kv_cache > 0) == (memory.longest is not None)
        assert estimate.activations > 0
        assert estimate.total == sum(estimate.parts().values()) > held + RUNTIME_BYTES

    def test_every_form_of_a_model(self, good: Path, tmp_path: Path) -> None:
        expected = estimate_memory(good)
        convert(good, tmp_path / "x.gchk")
        forms: list[Any] = [
            *(tmp_path / "x.gchk", good / "config.json", str(good / "config.json")),
            *(config(), gptrs.load(good)),
        ]
        for form in forms:
            assert estimate_memory(form) == expected

    def test_the_dtype(self, good: Path, tmp_path: Path) -> None:
        convert(good, tmp_path / "x", dtype=gptrs.ptir.bf16)
        expected = estimate_memory(tmp_path / "x")
        assert expected.packed < 0.6 * estimate_memory(good).packed
        assert estimate_memory(good, dtype="bf16") == expected
        for name in ("dtype", "torch_dtype"):
            assert estimate_memory({**config(), name: "bfloat16"}) == expected
        assert estimate_memory(tmp_path / "x", dtype=gptrs.ptir.f32) == estimate_memory(good)

    def test_the_cache_is_as_large_as_one_that_is_made(self, good: Path) -> None:
        cache = gptrs.load(good).module.init_cache(np.zeros(3, np.int32), 20)
        arrays = [cache.keys, cache.values, cache.length, cache.start]
        size = sum(array.numpy().nbytes for array in arrays)
        assert estimate_memory(good, context=20, batch=3).kv_cache == size

    def test_sizes_that_no_machine_has(self, good: Path) -> None:
        estimate = estimate_memory(good, batch=10**9)
        assert estimate.kv_cache > 10**12
        assert estimate.weights == estimate_memory(good).weights

    def test_images_at_once(self) -> None:
        one, four, more = (
            estimate_memory({"model_type": "resnet", **RESNET}, batch=n, threads=4)
            for n in (1, 4, 9)
        )
        image = 4 * 224 * 224 * 3
        assert one.activations > image
        assert four.activations > 3 * one.activations * 0.8, "each thread has its own"
        assert image <= (more.activations - four.activations) / 5 < 1.01 * image
        assert one.context is None

    @pytest.mark.slow
    def test_a_thread_more_makes_a_form_more(self) -> None:
        one, two, many = (
            estimate_memory({"model_type": "resnet", **RESNET18}, threads=n).loading
            for n in (1, 2, 99)
        )
        # The largest taps, the scale and the variance of its norm, and taps with these folded in.
        folded = 4 * (2 * 3 * 3 * 512 * 512 + 2 * 512)
        assert two - one == folded
        assert folded < one < folded + 10e6
        assert many < 2 * 47e6 + 10e6, "no more than all weights at once"

    def test_another_backend_holds_what_is_stored(self, good: Path) -> None:
        with gptrs.ptir.backend("reference"):
            estimate = estimate_memory(good)
        size = sum(parameter.bytes for parameter in gptrs.load(good).parameters().values())
        assert (estimate.weights, estimate.packed) == (size, 0)

    def test_the_text(self, good: Path) -> None:
        lines = str(estimate_memory(good)).splitlines()
        names = ["weights", "packed", "KV", "activations", "loading", "runtime", "total"]
        assert [line.split()[0] for line in lines] == names
        assert lines[5].split()[1:] == ["112.0", "MB"]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"context": 49}, "context is 49, and the model holds 48 tokens"),
            ({"context": 0}, "context is 0, expected an integer from 1 up"),
            ({"context": True}, "context is True"),
            ({"batch": 0}, "batch is 0, expected an integer from 1 up"),
            ({"threads": 1.5}, "threads is 1.5"),
            ({"dtype": "si32"}, "dtype is si32, expected one of f32, f16, bf16"),
        ],
    )
    def test_options_that_do_not_fit(self, good: Path, options: Any, said: str) -> None:
        with pytest.raises(ArgumentError, match=said):
            estimate_memory(good, **options)

    def test_images_have_no_context(self) -> None:
        with pytest.raises(ArgumentError, match="context is 5, and the model takes images"):
            estimate_memory({"model_type": "resnet", **RESNET}, context=5)

    @pytest.mark.parametrize("model", [{}, {"model_type": "none"}, "nothing.json", "nothing"])
    def test_what_is_no_model(self, model: Any, tmp_path: Path) -> None:
        with pytest.raises(LoadError):
            estimate_memory(tmp_path / model if isinstance(model, str) else model)


class TestFits:
    @pytest.mark.slow
    @pytest.mark.parametrize(("context", "batch"), [(1, 1), (13, 7), (48, 100)])
    def test_the_largest(self, memory: ModelMemory, context: int, batch: int) -> None:
        limit = memory.at(context=context, batch=batch).total
        found = fit(memory, limit, context=context, batch=batch)
        assert found.fits
        # One token more may take less: rows are packed in tiles, and these are whole then.
        longest = found.context
        assert longest is not None
        assert context <= longest <= 48
        assert memory.at(context=longest, batch=batch).total <= limit
        assert longest == 48 or memory.at(context=longest + 1, batch=batch).total > limit
        assert not fit(memory, limit - 1, context=context, batch=batch).fits
        # More rows are read in shorter chunks, which may take less.
        for most in (limit, limit - 1):
            rows = fit(memory, most, context=context, batch=batch).batch
            assert rows == 0 or memory.at(context=context, batch=rows).total <= most
            assert memory.at(context=context, batch=rows + 1).total > most
        assert found.batch >= batch if context * batch > CHUNK else found.batch == batch

    def test_nothing(self, memory: ModelMemory) -> None:
        found = fit(memory, 1000)
        assert (found.fits, found.context, found.batch) == (False, 0, 0)


class TestLoad:
    @pytest.mark.slow
    @pytest.mark.parametrize("limit", ["1GB", 10**9, "0.5 GiB"])
    def test_what_fits_is_loaded(self, good: Path, limit: Any) -> None:
        assert gptrs.load(good, memory_limit=limit).forward([1, 2]).shape[0] == 2

    @pytest.mark.slow
    def test_what_would_fit_is_said(self, good: Path) -> None:
        limit = estimate_memory(good, context=20, batch=50).total
        with pytest.raises(ArgumentError) as raised:
            gptrs.load(good, memory_limit=limit, batch=50)
        assert "with a context of 48 in 50 rows (weights " in str(raised.value)
        fix = raised.value.fix
        assert fix.startswith("load it with context=20, or with batch=")
        rows = int(fix.rpartition("=")[2])
        gptrs.load(good, memory_limit=limit, context=20, batch=50)
        gptrs.load(good, memory_limit=limit, batch=rows)
        with pytest.raises(ArgumentError):
            gptrs.load(good, memory_limit=limit, batch=rows + 1)

    @pytest.mark.slow
    def test_weights_in_16_bits(self, tmp_path: Path) -> None:
        path = random_model(tmp_path, "gpt2", {**config(), "n_embd": 256, "n_layer": 2})
        limit = estimate_memory(path, dtype="bf16").total + 1000
        said = r"convert the weights \(gptrs convert --dtype bf16\)"
        with pytest.raises(ArgumentError, match=said):
            gptrs.load(path, memory_limit=limit)

    def test_nothing_would_fit(self, good: Path) -> None:
        with pytest.raises(ArgumentError, match=r"memory_limit is 1\.0 MB") as raised:
            gptrs.load(good, memory_limit="1MB")
        assert raised.value.fix == "raise memory_limit, or choose a smaller model"

    @pytest.mark.parametrize("limit", ["much", -1, 2.5, True])
    def test_what_is_no_limit(self, good: Path, limit: Any) -> None:
        with pytest.raises(ArgumentError, match=r"memory_limit is .*, expected bytes"):
            gptrs.load(good, memory_limit=limit)


class TestMachine:
    MEMINFO = "MemTotal:       16000 kB\nMemFree:   1 kB\nMemAvailable:    8000 kB\n"

    def read(self, place: Path, membership: str, groups: dict[str, str]) -> MachineMemory:
        for name, text in {"meminfo": self.MEMINFO, "cgroup": membership, **groups}.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        return machine_memory(place / "meminfo", place / "cgroup", place / "fs")

    def test_without_groups(self, tmp_path: Path) -> None:
        found = self.read(tmp_path, "0::/\n", {})
        assert found == MachineMemory(16_384_000, 8_192_000, None)

    def test_version_2(self, tmp_path: Path) -> None:
        groups = {
            "fs/a/b/memory.max": "max\n",
            "fs/a/memory.max": "5000000\n",
            "fs/a/memory.current": "3000000\n",
            "fs/a/memory.stat": "file 9\ninactive_file 1000000\n",
        }
        found = self.read(tmp_path, "0::/a/b\n", groups)
        assert found == MachineMemory(16_384_000, 3_000_000, 5_000_000)

    def test_version_1(self, tmp_path: Path) -> None:
        groups = {
            "fs/memory/a/memory.limit_in_bytes": "5000000\n",
            "fs/memory/a/memory.usage_in_bytes": "6000000\n",
            "fs/memory/a/memory.stat": "inactive_file 9\ntotal_inactive_file 500000\n",
            "fs/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "fs/memory/memory.usage_in_bytes": "6000000\n",
        }
        found = self.read(tmp_path, "3:cpu,memory:/a\n2:pids:/a\n", groups)
        assert found == MachineMemory(16_384_000, 0, 5_000_000)

    def test_this_one(self) -> None:
        found = machine_memory()
        assert 0 < found.available <= found.total


@pytest.mark.slow
def test_a_decoder_by_its_sizes() -> None:
    sizes = (64, 128, 2, 1000, 4, 2, 48)
    found = gptrs.estimate_inference_memory(*sizes)
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size")
    names += ("num_attention_heads", "num_key_value_heads", "max_position_embeddings")
    config = {"model_type": "llama", **dict(zip(names, sizes, strict=True))}
    assert found == estimate_memory(config)
    assert gptrs.estimate_inference_memory(*sizes, 2) == estimate_memory(config, dtype="bf16")
    with pytest.raises(ArgumentError, match="bytes_per_weight is 3, expected 4"):
        gptrs.estimate_inference_memory(*sizes, 3)
