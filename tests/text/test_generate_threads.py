"""Generation in several Python threads gives the tokens of sequential generation."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import gptrs
from gptrs.backends.faer import step_templates
from gptrs.loading.language_model import LanguageModel
from tests.support.models import random_tokens, tiny_gpt2

TOKENS, TIMES = 24, 4
WIDE: dict[str, Any] = {"n_embd": 384, "n_head": 6, "n_positions": 64}
"""Products so large that they are cut for several threads."""
OPTIONS: list[dict[str, Any]] = [{}, {"temperature": 0.9, "top_k": 20, "seed": 3}]
PROMPTS: list[list[int]] = [random_tokens(count, seed=count).tolist() for count in (5, 9)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gpt2(tmp_path_factory.mktemp("wide"), **WIDE)


@pytest.fixture(params=["1", "2", "4"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GPTRS_NUM_THREADS", request.param)
    return request.param


def generate(model: LanguageModel, number: int) -> list[int]:
    given = {"max_tokens": TOKENS, "ignore_eos": True, **OPTIONS[number]}
    return list(model.stream_tokens(PROMPTS[number], **given))


@pytest.fixture(scope="module")
def alone(directory: Path) -> list[list[int]]:
    """The tokens of each prompt by a model that nobody else uses, on one thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPTRS_NUM_THREADS", "1")
        model = gptrs.load(directory)
        return [generate(model, number) for number in range(len(PROMPTS))]


def together(models: Sequence[LanguageModel]) -> list[list[list[int]]]:
    """What a Python thread for each prompt generates, time and again, all begun at once."""
    barrier = Barrier(len(PROMPTS))

    def work(number: int) -> list[list[int]]:
        barrier.wait(timeout=60)
        return [generate(models[number % len(models)], number) for _ in range(TIMES)]

    with ThreadPoolExecutor(len(PROMPTS)) as pool:
        return list(pool.map(work, range(len(PROMPTS)), timeout=120))


@pytest.mark.slow
@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("count", [1, 2], ids=["one model", "two models"])
def test_two_generate_at_once(directory: Path, alone: list[list[int]], count: int) -> None:
    """Weights are read and programs traced by whoever comes first."""
    models = [gptrs.load(directory) for _ in range(count)]
    jitted: Any = type(models[0].module).__call__
    jitted.clear_cache()
    assert together(models) == [[tokens] * TIMES for tokens in alone]


def test_steps_are_cut_for_several_threads(
    directory: Path, alone: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or else the models above would run on one thread each, whatever they ask for."""
    chunks: list[int] = []

    def noted(*fields: Any) -> step_templates.TemplateStep:
        made = template_step(*fields)
        chunks.append(made.chunks)
        return made

    template_step = step_templates.TemplateStep
    monkeypatch.setattr(step_templates, "TemplateStep", noted)
    monkeypatch.setenv("GPTRS_NUM_THREADS", "3")  # templates of 2 may be there
    assert generate(gptrs.load(directory), 0) == alone[0]
    assert max(chunks) > 1
