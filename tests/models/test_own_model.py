"""Users' models: docs/models.md, the registry, and entry points of installed packages."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.errors import ArgumentError, LoadError
from gptrs.models import Model, find_model, known_models, register, registry
from gptrs.models.gpt2 import GPT2, GPT2Config
from gptrs.models.registry import GROUP, MODELS
from gptrs.models.resnet import ResNet
from tests.support import ROOT
from tests.support.cli import Cli, in_process
from tests.support.models import Arrays, byte_tokenizer
from tests.support.packages import install

PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
CONFIG = {"model_type": "bigram", "hidden_size": 32}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)


SOURCE = "\n\n".join(blocks("python"))
(ENTRY,) = re.findall(r'^bigram = "(.*)"$', blocks("toml")[0], re.M)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers or imports is forgotten after it."""
    for table in ("_registered", "_loaded"):
        monkeypatch.setattr(registry, table, dict(vars(registry)[table]))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name in ("bigram", "other"):
            del sys.modules[name]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages."""
    made = tmp_path / "site"
    made.mkdir()
    monkeypatch.setattr(sys, "path", [str(made), *sys.path])
    return made


@pytest.fixture
def module(site: Path) -> ModuleType:
    """The page's file, imported."""
    (site / "bigram.py").write_text(SOURCE, encoding="utf-8")
    return importlib.import_module("bigram")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys)


def weights(seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    shapes = {"embed.weight": (262, 32), "hidden.weight": (32, 32), "hidden.bias": (32,)}
    shapes["head.weight"] = (262, 32)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def expected(tokens: list[int]) -> Any:
    """What the page's model computes, in NumPy."""
    w = weights()
    x = w["embed.weight"][tokens] @ w["hidden.weight"].T + w["hidden.bias"]
    gelu: Any = ptir.gelu(ptir.tensor(x)).numpy()
    return gelu @ w["head.weight"].T


def directory(place: Path) -> Path:
    """A model directory with a tokenizer, written with files alone: nobody has to know it."""
    from gptrs.formats.hf_directory import write_directory
    from gptrs.formats.tensor_writer import new_tensors

    tensors = new_tensors(weights(), [ptir.f32], "directories")
    write_directory(place, CONFIG, tensors, 10**9, {})
    byte_tokenizer().save(str(place / "tokenizer.json"))
    return place


class TestPage:
    def test_it_is_short(self) -> None:
        assert len([line for line in SOURCE.splitlines() if line.strip()]) < 80
        assert max(map(len, SOURCE.splitlines())) <= 100

    @pytest.mark.slow
    def test_the_commands_run(
        self, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
    ) -> None:
        install(site, "bigram", GROUP, f"bigram = {ENTRY}", source=SOURCE)
        directory(tmp_path / "model")
        monkeypatch.chdir(tmp_path)
        lines = [line for line in blocks("console")[0].splitlines() if line.startswith("$ gptrs ")]
        assert len(lines) == 5
        for line in lines:
            command = [word.strip('"') for word in line.split()[2:]]
            done = cli(*command)
            assert (done.code, done.err) == (0, ""), line
            assert done.out, line


class TestInstalled:
    @pytest.fixture(autouse=True)
    def bigram(self, site: Path) -> None:
        install(site, "bigram", GROUP, f"bigram = {ENTRY}", source=SOURCE)

    @pytest.mark.slow
    def test_a_directory_and_what_is_made_of_it(self, tmp_path: Path) -> None:
        tokens = [5, 261, 0]
        place = directory(tmp_path / "model")
        model = gptrs.load(place)
        assert type(model.module).__module__ == "bigram"
        np.testing.assert_allclose(model.forward(tokens).numpy(), expected(tokens), atol=1e-4)
        from gptrs.loading.convert import convert

        convert(place, tmp_path / "x.gchk")
        convert(tmp_path / "x.gchk", tmp_path / "again")
        gptrs.export(model, tmp_path / "y.gchk")
        gptrs.export(
            {f"bigram.{n}": a for n, a in weights().items()}, tmp_path / "z", config=CONFIG
        )
        for path in ("x.gchk", "again", "y.gchk", "z"):
            other = gptrs.load(tmp_path / path)
            assert other.kind == "bigram"
            np.testing.assert_array_equal(
                other.forward(tokens).numpy(), model.forward(tokens).numpy()
            )
        prompts = ["One", "Another day"]
        alone = [model.generate(prompt, max_tokens=5) for prompt in prompts]
        assert model.generate(prompts, max_tokens=5) == alone

    def test_a_state_dict_of_torch(self) -> None:
        import torch

        state = {name: torch.as_tensor(array) for name, array in weights().items()}
        model = gptrs.from_torch(state, config=CONFIG)
        np.testing.assert_allclose(model.forward([7]).numpy(), expected([7]), atol=1e-4)

    def test_estimates(self, tmp_path: Path) -> None:
        estimate = gptrs.estimate_memory(CONFIG, context=16)
        assert estimate == gptrs.estimate_memory(directory(tmp_path / "model"), context=16)
        assert estimate.weights + estimate.packed >= 0.8 * sum(a.nbytes for a in weights().values())
        assert gptrs.load(tmp_path / "model", memory_limit="1GB").kind == "bigram"

    @pytest.mark.slow
    def test_the_command_line_of_another_process(self, site: Path, tmp_path: Path) -> None:
        place = directory(tmp_path / "model")
        path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "gptrs",
                "forward",
                "--model",
                str(place),
                "--text",
                "A",
                "--json",
            ],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)

    @pytest.mark.slow
    def test_comparisons_say_that_nobody_else_has_it(
        self, tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
    ) -> None:
        place = str(directory(tmp_path / "model"))
        for verb in ("validate", "trace"):
            done = cli(verb, place)
            assert done.code == 1
            assert "transformers has no model 'bigram' to compare with" in done.err

    def test_the_bench_has_nobody_beside_it(self, tmp_path: Path) -> None:
        from gptrs_bench.measure import measure
        from gptrs_bench.plan import Run
        from gptrs_bench.results import Excluded

        place = str(directory(tmp_path / "model"))
        found = next(iter(measure(Run(model=place, bench_tokens=(4,), against=("torch",)))))
        assert isinstance(found, Excluded)
        assert "models of another kind" in str(found)

    def test_it_is_listed(self) -> None:
        assert known_models() == tuple(sorted(["bigram", *MODELS]))
        assert "bigram" not in sys.modules
        with pytest.raises(LoadError, match="expected one of bigram, gemma, gemma2"):
            gptrs.estimate_memory({"model_type": "trigram"})

    def test_another_class_cannot_have_the_name(self) -> None:
        said = r"there is a model 'bigram' already: bigram:Bigram \(bigram 1\.0\)"
        with pytest.raises(ArgumentError, match=said):
            register("bigram", Other)

    def test_its_own_file_may_register_it_too(self) -> None:
        assert "gptrs.models.register" in SOURCE
        assert find_model("bigram") is importlib.import_module("bigram").Bigram
        assert find_model("bigram") is find_model("bigram")


class Other(GPT2):
    pass


class NoTask(Model):
    config_type: ClassVar = GPT2Config


class NoConfig(Model):
    task: ClassVar = "causal_lm"
    config_type: ClassVar = dict


class Unfinished(Model):
    task: ClassVar = "causal_lm"
    config_type: ClassVar = GPT2Config
    vocab_size: int


class Untraced(Model):
    task: ClassVar = "image_classifier"
    config_type: ClassVar = GPT2Config
    image_size: int

    @classmethod
    def build(cls, config: Any, parameter: Any) -> Any:
        return cls(config, 224)

    def __call__(self, images: Any) -> Any:
        return images


class TestRegistered:
    def test_it_is_found(self) -> None:
        assert register("other", Other) is Other
        assert find_model("other") is Other
        assert "other" in known_models()

    def test_names_are_looked_up_in_packages_last(self, monkeypatch: pytest.MonkeyPatch) -> None:
        register("other", Other)

        def slow(**_: Any) -> Any:
            raise AssertionError("packages were looked at")

        monkeypatch.setattr(importlib.metadata, "entry_points", slow)
        assert find_model("other") is Other
        assert find_model("gpt2") is GPT2
        gptrs.estimate_memory({"model_type": "gpt2", "n_layer": 1})
        with pytest.raises(AssertionError, match="looked at"):
            find_model("nobody")
        with pytest.raises(AssertionError, match="looked at"):
            known_models()

    @pytest.mark.parametrize(
        ("name", "owner"),
        [
            ("gpt2", r"gptrs\.models\.gpt2:GPT2, which is built in"),
            ("resnet34", "checkpoints call 'resnet' so"),
            ("gpt", "checkpoints call 'gpt2' so"),
            ("mine", r".*test_own_model:Other, which was registered"),
        ],
    )
    def test_a_name_that_is_taken(self, name: str, owner: str) -> None:
        register("mine", Other)
        with pytest.raises(ArgumentError, match=f"there is a model '{name}' already: {owner}"):
            register(name, ResNet)

    def test_a_class_may_be_written_again(self) -> None:
        register("mine", Other)
        again: Any = type("Other", (GPT2,), {"__module__": __name__, "__qualname__": "Other"})
        register("mine", again)
        assert find_model("mine") is again

    @pytest.mark.parametrize(
        ("name", "model", "said"),
        [
            ("", Other, "a model's name is a word, found ''"),
            (3, Other, "a model's name is a word, found 3"),
            ("mine", GPT2Config, "is no class of a model"),
            ("mine", lambda: None, "is no class of a model"),
            ("mine", NoTask, "the task of NoTask is None, expected one of causal_lm, image_cl"),
            ("mine", NoConfig, "the config_type of NoConfig is no dataclass"),
            ("mine", Unfinished, "Unfinished has no context_length, init_cache, build"),
            ("mine", Untraced, "__call__ of Untraced is not traced"),
        ],
    )
    def test_what_cannot_be_registered(self, name: Any, model: Any, said: str) -> None:
        with pytest.raises(ArgumentError, match=re.escape(said)):
            register(name, model)


class TestBroken:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("entry", "source", "said"),
        [
            ("bigram = other:Absent", SOURCE, "other:Absent (other 1.0): AttributeError"),
            ("bigram = other.no:Bigram", SOURCE, "other.no:Bigram (other 1.0): ModuleNotFoundErr"),
            ("bigram = other:Bigram", "1 / 0", "other:Bigram (other 1.0): ZeroDivisionError"),
            ("bigram = other:Bigram", "def", "other:Bigram (other 1.0): SyntaxError"),
            ("bigram = other:np", SOURCE, "other:np (other 1.0): <module"),
            ("bigram = other:Model", SOURCE, "other:Model (other 1.0): the task of Model is None"),
        ],
    )
    def test_a_package(
        self, site: Path, tmp_path: Path, cli: Cli, entry: str, source: str, said: str
    ) -> None:
        # What the page's file registers is another class than the one that the entry names.
        source = source.replace('gptrs.models.register("bigram", Bigram)', "")
        install(site, "other", GROUP, entry, source=source)
        place = directory(tmp_path / "model")
        with pytest.raises(ArgumentError, match=re.escape(said)):
            gptrs.load(place)
        done = cli("generate", "--model", str(place))
        assert (done.code, done.out) == (1, "")
        assert said in done.err
        assert gptrs.estimate_memory({"model_type": "gpt2"}), "others are not concerned"

    def test_two_packages_offer_one_name(self, site: Path, tmp_path: Path) -> None:
        for name in ("one", "two"):
            install(site, name, GROUP, f"bigram = {name}:Bigram")
        said = r"a model 'bigram': one:Bigram \(one 1\.0\), two:Bigram \(two 1\.0\)"
        with pytest.raises(ArgumentError, match=said):
            gptrs.load(directory(tmp_path / "model"))

    def test_a_built_in_name_stays(self, site: Path) -> None:
        install(site, "other", GROUP, "gpt2 = other:Absent")
        assert find_model("gpt2") is GPT2
