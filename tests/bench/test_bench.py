"""Comparisons: what is measured, why a peer is skipped, suites, and the files of results."""

from __future__ import annotations

import csv
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
import gptrs_bench
from gptrs.errors import ArgumentError, BenchError, LoadError
from gptrs.formats.tensor_writer import NewTensor
from gptrs.loading.convert import convert
from gptrs.loading.random_model import write_random_model
from gptrs_bench.agreement import DifferenceError, allowed, check_logits, check_tokens
from gptrs_bench.export import write_for_peers
from gptrs_bench.gpt2 import read_sizes
from gptrs_bench.images import read_network
from gptrs_bench.measure import measure
from gptrs_bench.peers import DECODERS, GPT2, IMAGES
from gptrs_bench.plan import Case, Run
from gptrs_bench.processes import first_output
from gptrs_bench.results import Excluded, Result, as_csv, as_json
from gptrs_bench.suite import read_suite
from gptrs_bench.worker import Worker
from tests.support.models import tiny_gpt2

RESNET: dict[str, Any] = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16],
    "depths": [1, 2],
    "num_labels": 7,
}
MOBILENET_V2: dict[str, Any] = {
    "model_type": "mobilenet_v2",
    "depth_multiplier": 0.25,
    "image_size": 44,
    "output_stride": 16,
    "num_labels": 7,
}


def configured(folder: Path, config: dict[str, Any]) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(config))
    return file


def measured(run: Run) -> tuple[list[Result], list[Excluded]]:
    found = list(measure(run))
    results = [part for part in found if isinstance(part, Result)]
    return results, [part for part in found if isinstance(part, Excluded)]


@pytest.mark.slow
def test_a_language_model_is_measured_beside_torch(tmp_path: Path) -> None:
    directory = tiny_gpt2(tmp_path / "gpt2")
    convert(directory, checkpoint := tmp_path / "gpt2.gchk")
    modes = "prefill", "decode"
    run = Run(str(checkpoint), threads=(1,), bench_tokens=(1, 5), modes=modes, rounds=2)
    results, excluded = measured(run)
    assert excluded == []
    assert [(r.mode, r.count, r.unit) for r in results] == [
        *(("prefill", 1, "ms"), ("prefill", 5, "ms")),
        *(("decode", 1, "tokens/s"), ("decode", 5, "tokens/s")),
    ]
    for result in results:
        assert set(result.sides) == {"ours", "torch loop", "transformers", "transformers static"}
        assert all(len(figures) == 2 and min(figures) > 0 for figures in result.sides.values())
        if result.mode == "prefill":
            assert result.differences["ours"] == 0
            assert 0 < result.differences["transformers"] < 1e-3
    assert not list(tmp_path.glob("gpt2-*")), "nothing is written beside the model"


@pytest.mark.slow
@pytest.mark.parametrize("config", [RESNET, MOBILENET_V2], ids=["resnet", "mobilenet_v2"])
def test_random_image_models_are_measured_beside_torch(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    file = configured(tmp_path, config)
    against = "torch", "jax"
    run = Run(random=file, threads=(1,), batch=(2,), modes=("latency",), against=against, rounds=1)
    (result,), (excluded,) = measured(run)
    assert (result.mode, result.count, result.unit) == ("latency", 2, "ms")
    folds = {"torch", "torch folded", "torch channels_last", "torch folded channels_last"}
    assert set(result.sides) == {"ours", "transformers", *folds}
    assert str(excluded) == f"{file}: jax is left out: it is for models of another kind"


@pytest.mark.slow
def test_starting_python_is_measured(tmp_path: Path) -> None:
    run = Run(random=configured(tmp_path, RESNET), threads=(1,), modes=("start",), rounds=1)
    (result,), excluded = measured(run)
    assert (result.unit, set(result.sides), excluded) == ("s", {"ours", "torch"}, [])


def test_peers_that_are_not_installed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GPT2.required, "openvino", ("a_library", "numpy", "another_library"))
    given = str(tiny_gpt2(tmp_path / "gpt2"))
    run = Run(given, threads=(1,), bench_tokens=(46,), modes=("decode",), against=("openvino",))
    found = measure(run)
    excluded = next(found)
    found.close()
    assert isinstance(excluded, Excluded)
    assert excluded.reason == "not installed: a_library, another_library"


def test_what_others_get_says_everything(tmp_path: Path) -> None:
    fields = {"scale_attn_by_inverse_layer_idx": True, "n_inner": 40, "tie_word_embeddings": False}
    model = gptrs.load(tiny_gpt2(tmp_path / "gpt2", dtype="f16", **fields))
    write_for_peers(model, tmp_path / "written")
    sizes = read_sizes(tmp_path / "written")
    assert (sizes.inner, sizes.is_tied, sizes.scale(1)) == (40, False, 8**-0.5 / 2)
    written = gptrs.load(tmp_path / "written").parameters()
    assert written.keys() == model.parameters().keys()
    for name, value in model.parameters().items():
        np.testing.assert_array_equal(written[name].numpy(), value.numpy().astype(np.float32))


def test_a_network_is_what_it_was_when_it_is_read(tmp_path: Path) -> None:
    write_random_model(configured(tmp_path, MOBILENET_V2), tmp_path / "random")
    write_for_peers(gptrs.load(tmp_path / "random"), tmp_path / "written")
    network = read_network(tmp_path / "written")
    strided = {conv.name: (conv.before, conv.after) for conv in network.convs() if conv.stride == 2}
    # 44 → 22 → 11 → 6 → 3: what is odd gets zeros at both ends, as TensorFlow does it.
    assert list(strided.values()) == [(0, 1), (0, 1), (1, 1), (0, 1)]
    assert {conv.dilation for conv in network.convs()} == {1, 2}
    assert (network.size, network.channels, network.classes) == (44, 3, 7)


def test_sides_must_agree() -> None:
    ours = np.array([[1.0, 2.0, 3.0]], np.float32)
    assert allowed(ours, 1e-3, usual=2.8) == 1e-3
    assert allowed(100 * ours, 1e-3, usual=2.8) == pytest.approx(1e-3 * 216.02 / 2.8, rel=1e-3)
    assert check_logits(ours, ours + np.float32(0.25), 0.5) == 0.25
    for theirs, said in (
        (ours + 1, "1 from ours, more than 0.5"),
        (np.full_like(ours, np.nan), "nan from ours"),
        (ours[:, :2], r"\(1, 2\), ours \(1, 3\)"),
    ):
        with pytest.raises(DifferenceError, match=said):
            check_logits(ours, theirs, 0.5)


def test_tokens_may_differ_where_two_are_as_likely() -> None:
    def after(tokens: list[int]) -> Any:
        return np.array([[0.0, 1.0, 1.001 if tokens == [2] else 3.0]], np.float32)

    check_tokens([2, 2, 0], [2, 1, 1], after, lambda logits: 1e-3)
    with pytest.raises(DifferenceError, match="it chooses 1, and we 2"):
        check_tokens([2, 2, 0], [1, 2, 0], after, lambda logits: 1e-3)
    with pytest.raises(DifferenceError, match="it chooses 3, and we 2"):
        check_tokens([2], [3], after, lambda logits: 1e-3)
    with pytest.raises(DifferenceError, match="it gives 1 tokens, and we 2"):
        check_tokens([2, 2], [2], after, lambda logits: 1e-3)


@pytest.mark.slow
def test_a_side_that_gives_something_else_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gptrs_bench.export._widened", _doubled)
    directory = tiny_gpt2(tmp_path / "gpt2")
    modes = "prefill", "decode"
    given: dict[str, Any] = {"bench_tokens": (4,), "modes": modes, "rounds": 1}
    results, excluded = measured(Run(str(directory), threads=(1,), **given))
    assert {part.side for part in excluded} == {"torch loop", "transformers", "transformers static"}
    assert all(part.is_wrong and part.threads == 1 for part in excluded)
    assert [set(result.sides) for result in results] == [{"ours"}, {"ours"}]


def _doubled(name: str, value: Any) -> Any:
    return NewTensor.of(name, 2 * value.numpy() if name.endswith("c_attn.weight") else value)


RESULT = Result(
    *("stories", "decode", 8, 2, "tokens/s"),
    {"ours": [10.0, 20.0, 40.0], "slow": [5.0, 5.0, 5.0], "fast": [20.0, 20.0, 80.0]},
    {"slow": 1e-6},
)


def test_rows_have_medians_quartiles_and_ratios() -> None:
    ours, fast, slow = RESULT.rows()
    assert (ours.side, ours.median, ours.first_quartile, ours.third_quartile) == (
        *("ours", 20.0, 15.0, 30.0),
    )
    assert (fast.side, fast.times_as_good, fast.difference) == ("fast", 0.5, None)
    assert (slow.side, slow.times_as_good, slow.difference) == ("slow", 4.0, 1e-6)
    in_seconds = Result("m", "start", 1, 1, "s", {"ours": [2.0], "other": [1.0]}, {})
    assert [row.times_as_good for row in in_seconds.rows()] == [1.0, 0.5]
    assert in_seconds.rows()[0].third_quartile == 2.0


def test_results_as_json_and_csv() -> None:
    left = Excluded("stories", "jax", "not installed: jax")
    made = json.loads(json.dumps(as_json({"cpu": "x"}, [RESULT], [left])))
    assert made["cpu"] == "x"
    assert made["results"][1]["figures"] == [20.0, 20.0, 80.0]
    assert made["left_out"][0]["side"] == "jax"
    rows = list(csv.DictReader(as_csv([RESULT]).splitlines()))
    assert [(row["side"], float(row["median"])) for row in rows] == [
        *(("ours", 20.0), ("fast", 20.0), ("slow", 5.0)),
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "neither a model nor a random one"),
        ({"model": "x", "random": Path("y")}, "both of them"),
        ({"model": "x", "threads": (1, 0)}, "threads has 0, expected integers from 1 up"),
        ({"model": "x", "rounds": 0}, "rounds is 0, expected an integer from 1 up"),
        ({"model": "x", "modes": ("speed",)}, "modes has 'speed', expected some of prefill"),
        ({"model": "x", "against": ("tensor",)}, "against has 'tensor', expected some of torch"),
    ],
)
def test_runs_that_make_no_sense(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        Run(**fields)


def test_runs_that_do_not_fit_their_model() -> None:
    with pytest.raises(ArgumentError, match="bench_tokens has 63, and x has a context of 64"):
        Run("x", bench_tokens=(5, 63)).text_cases(64)
    assert Run("x", bench_tokens=(64,), modes=("prefill",)).text_cases(64) == [Case("prefill", 64)]
    assert Run("x", modes=("start",)).text_cases(8) == [Case("start", 1)]
    with pytest.raises(ArgumentError, match="batch is of image models"):
        Run("x", batch=(1,)).text_cases(64)
    with pytest.raises(ArgumentError, match="bench_tokens is of language models"):
        Run("x", bench_tokens=(1,)).image_cases()
    with pytest.raises(ArgumentError, match="modes has 'decode', and x has latency, start"):
        Run("x", modes=("decode",)).image_cases()


SUITE = [
    {"model": "stories", "threads": [1, 2], "bench_tokens": [1, 64], "against": ["torch"]},
    {"random": "a.json", "batch": [1], "rounds": 3},
    {"model": "gpt2", "modes": ["decode"], "backend": "reference"},
]


@pytest.mark.parametrize("name", ["suite.json", "suite.yaml"])
def test_suites(tmp_path: Path, name: str) -> None:
    (tmp_path / "gpt2").mkdir()
    (tmp_path / name).write_text(json.dumps(SUITE))  # which is YAML too
    common = {"against": ("jax",), "rounds": 1, "threads": (4,)}
    assert read_suite(tmp_path / name, common) == [
        Run("stories", threads=(1, 2), bench_tokens=(1, 64), against=("torch",), rounds=1),
        Run(random=tmp_path / "a.json", threads=(4,), batch=(1,), against=("jax",), rounds=3),
        Run(
            str(tmp_path / "gpt2"),
            threads=(4,),
            modes=("decode",),
            against=("jax",),
            rounds=1,
            backend="reference",
        ),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{", "is not JSON"),
        ("{}", "holds an object, expected a list of entries"),
        ("[]", "holds nothing, expected a list of entries"),
        ('[{"model": "x"}, 7]', "entry 2 is 7, expected an object"),
        ('[{"model": "x", "thread": [1]}]', "entry 1: 'thread' is no field of a run"),
        ('[{"model": "x", "threads": 1}]', "entry 1: threads is 1, expected a list of integers"),
        ('[{"model": "x", "batch": [true]}]', r"entry 1: batch is \[True\], expected a list of"),
        ('[{"model": "x", "rounds": "3"}]', "entry 1: rounds is '3', expected an integer from 1"),
        ('[{"model": "x", "threads": [0]}]', "entry 1: threads has 0, expected integers from 1"),
        ('[{"model": "x", "random": "y"}]', "entry 1: both of them, expected a model or"),
        ('[{"threads": [1]}]', "entry 1: neither a model nor a random one"),
    ],
)
def test_suites_that_are_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "suite.json"
    file.write_text(text)
    with pytest.raises(LoadError, match=f"suite.json.*{said}"):
        read_suite(file, {})


ANCHORED = """
- &first {model: stories, against: &peers [torch, jax], rounds: 2}
- {<<: *first, batch: [1], model: gpt2}
- {model: gpt2, against: *peers}
"""


def test_aliases_in_suites(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(ANCHORED)
    first, second, third = read_suite(file, {"rounds": 1})
    assert (first.model, second.model, second.batch) == ("stories", "gpt2", (1,))
    assert first.against == second.against == third.against == ("torch", "jax")
    assert (first.rounds, second.rounds, third.rounds) == (2, 2, 1)


def doubled(first: str, part: str, last: str) -> str:
    """Thirty anchors, each with the one before twice."""
    lines = [f"- &a0 {first}"]
    lines += [f"- &a{n} " + part.replace("*", f"*a{n - 1}") for n in range(1, 30)]
    return "\n".join([*lines, f"- {{{last}: *a29}}"])


@pytest.mark.parametrize(
    "text",
    [
        doubled("[torch]", "[*, *]", "threads"),
        doubled("{x: y}", "{a: *, b: *}", "threads"),
        doubled("{rounds: 1}", "{<<: [*, *]}", "<<"),
        "- &a [*a]",
        f"- &a {'x' * 5000}\n- threads: [{'*a,' * 1000}]",
    ],
    ids=["lists", "mappings", "merged", "endless", "text"],
)
def test_aliases_that_multiply_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(LoadError, match="with what its aliases stand for, expected at most"):
            read_suite(file, {})
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["- 2020-13-45", f"- {'9' * 5000}", "- \0", "[" * 5000, "- *a"])
def test_suites_that_are_no_yaml(tmp_path: Path, text: str) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(text)
    with pytest.raises(LoadError, match=r"suite\.yaml is not YAML: "):
        read_suite(file, {})


def test_yaml_needs_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "suite.yml"
    file.write_text("- model: [")
    with pytest.raises(LoadError, match="is not YAML"):
        read_suite(file, {})
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(LoadError, match=r"(?s)PyYAML, which is not installed.*gptrs\[bench\]"):
        read_suite(file, {})
    with pytest.raises(LoadError, match="cannot be read"):
        read_suite(tmp_path / "missing.json", {})


@pytest.mark.slow
def test_processes_that_fail_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wrong.py").write_text("import sys; sys.exit('no such thing')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    worker = Worker("wrong", quiet=True)
    with pytest.raises(BenchError, match="its process ended with 1: no such thing"):
        worker.ask("names")
    worker.close()
    with pytest.raises(BenchError, match="its process ended with 1: no such thing"):
        first_output(("-m", "wrong"))
    side = Worker("gptrs_bench.side", "ours", "text", str(tmp_path), "1", quiet=True)
    with pytest.raises(BenchError, match=r"LoadError: .*config.json does not exist"):
        side.ask("names")
    side.close()


def test_every_peer_has_a_module() -> None:
    folder = Path(str(gptrs_bench.__file__)).parent / "peers"
    for peers in (GPT2, DECODERS, IMAGES):
        for name in peers.required:
            text = (folder / f"{name}_{peers.task}.py").read_text()
            assert "def sides(" in text
            assert ("def quickest(" in text) == bool(peers.quick([name]))
