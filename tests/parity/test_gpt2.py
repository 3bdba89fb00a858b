"""GPT-2 against transformers' GPT2LMHeadModel, and against itself with a cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gptrs
from gptrs import ptir
from gptrs.loading.language_model import LanguageModel
from gptrs.nn.activations import ACTIVATIONS
from tests.support.lazy_torch import torch, transformers
from tests.support.models import DTYPES, config, in_files, random_tokens, tensors, tiny_gpt2, write

pytestmark = pytest.mark.slow

Logits = NDArray[np.float32]

TORCH_ERROR = 1e-4  # two f32 programs that sum in different orders, logits of order 10
OWN_ERROR = 1e-5  # the same program at other sizes

SHAPES: dict[str, dict[str, Any]] = {
    "one layer, one head": {"n_layer": 1, "n_head": 1, "n_embd": 16},
    "heads of one": {"n_head": 8, "n_embd": 8},
    "odd": {"n_layer": 3, "n_head": 3, "n_embd": 21, "n_positions": 17},
    "deep": {"n_layer": 10, "n_head": 4, "n_embd": 24},
    "wide": {"n_layer": 2, "n_head": 12, "n_embd": 192, "vocab_size": 1001},
    "n_inner": {"n_inner": 5},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "layer_norm_epsilon": {"layer_norm_epsilon": 0.3},
    "untied": {"tie_word_embeddings": False},
    "unscaled": {"scale_attn_weights": False},
    "by layer": {"scale_attn_by_inverse_layer_idx": True},
    "unscaled by layer": {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True},
    **{name: {"activation_function": name} for name in ACTIVATIONS if name != "gelu_new"},
}


def reference(directory: Path) -> Any:
    """transformers' model of ``directory``, computing in f32 whatever its weights are."""
    torch.set_num_threads(1)
    kind: Any = transformers.GPT2LMHeadModel
    made = kind.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
    return made.eval()


def reference_logits(directory: Path, tokens: NDArray[np.int64]) -> Logits:
    with torch.no_grad():
        return reference(directory)(torch.as_tensor(tokens)).logits.numpy()


def assert_parity(directory: Path, tokens: NDArray[np.int64]) -> Logits:
    expected = reference_logits(directory, tokens)
    assert 1.5 < expected.std() < 5, "logits of this size make the tolerance mean something"
    found = gptrs.load(directory).forward(tokens).numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=TORCH_ERROR)
    return expected


@pytest.mark.parametrize("fields", SHAPES.values(), ids=SHAPES.keys())
def test_logits_at_any_shape(tmp_path: Path, fields: dict[str, Any]) -> None:
    directory = tiny_gpt2(tmp_path, **fields)
    assert_parity(directory, random_tokens(2, config(**fields)["n_positions"]))


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS.keys())
def test_logits_of_every_variant(tmp_path: Path, fields: dict[str, Any]) -> None:
    tokens = random_tokens(2, 12)
    expected = assert_parity(tiny_gpt2(tmp_path / "variant", **fields), tokens)
    plain = gptrs.load(tiny_gpt2(tmp_path / "plain")).forward(tokens).numpy()
    named = fields.get("activation_function", "gelu")
    if ACTIVATIONS[named] is not ACTIVATIONS["gelu_new"]:
        assert np.abs(expected - plain).max() > 10 * TORCH_ERROR, "the field makes a difference"


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_of_narrow_weights(tmp_path: Path, dtype: str, tied: bool) -> None:
    directory = tiny_gpt2(tmp_path, dtype, tie_word_embeddings=tied)
    assert_parity(directory, random_tokens(2, 12))
    model = gptrs.load(directory)
    kept = {parameter.numpy().dtype for parameter in model.module.parameters().values()}
    assert kept == {np.dtype(DTYPES[dtype])}


def without_prefix(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("transformer."): array for name, array in arrays.items()}


def with_old_buffers(arrays: dict[str, Any]) -> dict[str, Any]:
    mask = np.tril(np.ones((1, 1, 48, 48), np.uint8))
    extra = {f"transformer.h.{i}.attn.bias": mask.copy() for i in range(2)}
    lowest = {f"transformer.h.{i}.attn.masked_bias": np.full((), -1e4, np.float32) for i in (0, 1)}
    return arrays | extra | lowest


def with_a_copied_head(arrays: dict[str, Any]) -> dict[str, Any]:
    return arrays | {"lm_head.weight": arrays["transformer.wte.weight"].copy()}


def with_only_the_head(arrays: dict[str, Any]) -> dict[str, Any]:
    copied = with_a_copied_head(arrays)
    del copied["transformer.wte.weight"]
    return copied


STORED: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    without_prefix,
    with_old_buffers,
    with_a_copied_head,
    with_only_the_head,
]


@pytest.mark.parametrize("stored", STORED, ids=lambda change: change.__name__)
def test_logits_however_weights_are_stored(
    tmp_path: Path, stored: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    settings = config()
    directory = write(tmp_path, settings, stored(in_files(tensors(settings))))
    assert_parity(directory, random_tokens(1, 12))


@pytest.mark.parametrize("shards", [2, 5])
def test_logits_of_sharded_weights(tmp_path: Path, shards: int) -> None:
    settings = config(tie_word_embeddings=False)
    directory = write(tmp_path, settings, in_files(tensors(settings)), shards)
    assert_parity(directory, random_tokens(1, 12))


def test_other_names_of_config_fields(tmp_path: Path) -> None:
    old = {"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads"}
    settings = config(max_position_embeddings=48)
    arrays = in_files(tensors(settings))
    renamed = {old.get(name, name): value for name, value in settings.items()}
    del renamed["n_positions"]
    assert_parity(write(tmp_path, renamed, arrays), random_tokens(1, 12))


@pytest.mark.parametrize("eager", [False, True], ids=["jit", "eager"])
@pytest.mark.parametrize("fields", [{}, SHAPES["odd"], VARIANTS["untied"]])
def test_greedy_tokens(tmp_path: Path, fields: dict[str, Any], eager: bool) -> None:
    directory = tiny_gpt2(tmp_path, **fields)
    prompt = random_tokens(5)
    expected = reference(directory).generate(
        torch.as_tensor(prompt[None]), do_sample=False, max_new_tokens=12, pad_token_id=0
    )[0, 5:]
    with ptir.eager(eager):
        found = list(gptrs.load(directory).stream_tokens(prompt.tolist(), max_tokens=12))
    ended = len(found) < 12  # transformers yields the end of text, stream_tokens does not
    assert found == expected.tolist()[: len(expected) - ended]
    assert len(set(found)) > 3, "a model that repeats itself would pass with a broken cache"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return gptrs.load(tiny_gpt2(tmp_path_factory.mktemp("gpt2")))


@pytest.fixture(params=[False, True], ids=["jit", "eager"])
def any_mode(request: pytest.FixtureRequest) -> Any:
    with ptir.eager(request.param):
        yield


def in_parts(
    model: LanguageModel,
    tokens: NDArray[np.int64],
    parts: list[int],
    starts: list[int] | None = None,
) -> Logits:
    """Logits of ``tokens`` [batch, count], given to a cache in parts of these lengths."""
    batch, count = tokens.shape
    assert sum(parts) == count
    cache = model.module.init_cache(np.array(starts or [0] * batch, np.int32), count + 3)
    found: list[Logits] = []
    at = 0
    for length in parts:
        logits, cache = model.module(tokens[:, at : at + length], cache)
        found.append(np.array(logits))
        at += length
    return np.concatenate(found, axis=1)


@pytest.mark.usefixtures("any_mode")
@pytest.mark.parametrize("parts", [[20], [1] * 20, [7, 1, 1, 11], [19, 1]], ids=str)
def test_a_cache_changes_nothing(model: LanguageModel, parts: list[int]) -> None:
    tokens = random_tokens(2, 20)
    expected = model.forward(tokens).numpy()
    np.testing.assert_allclose(in_parts(model, tokens, parts), expected, rtol=0, atol=OWN_ERROR)


@pytest.mark.usefixtures("any_mode")
@pytest.mark.parametrize("cached", [False, True], ids=["plain", "cached"])
def test_last_logits_are_the_last_of_all(model: LanguageModel, cached: bool) -> None:
    tokens = random_tokens(3, 9)

    def logits(which: str) -> Logits:
        cache = model.module.init_cache(np.zeros(3, np.int32), 12) if cached else None
        return np.array(model.module(tokens, cache, logits=which)[0])

    assert logits("last").shape == (3, 1, model.config.vocab_size)
    np.testing.assert_allclose(logits("last"), logits("all")[:, -1:], rtol=0, atol=OWN_ERROR)


@pytest.mark.usefixtures("any_mode")
@pytest.mark.parametrize("parts", [[14], [9, 1, 1, 1, 1, 1]], ids=str)
def test_rows_of_different_lengths(model: LanguageModel, parts: list[int]) -> None:
    lengths = [14, 1, 6, 13]
    padded = random_tokens(4, 14)  # what lies before a row's start is arbitrary
    found = in_parts(model, padded, parts, [14 - length for length in lengths])
    for row, length in enumerate(lengths):
        alone = model.forward(padded[row, 14 - length :]).numpy()
        np.testing.assert_allclose(found[row, 14 - length :], alone, rtol=0, atol=OWN_ERROR)


def test_a_row_sees_only_its_past(model: LanguageModel) -> None:
    tokens = random_tokens(1, 10)
    changed = tokens.copy()
    changed[0, 6] += 1
    before, after = model.forward(tokens).numpy(), model.forward(changed).numpy()
    np.testing.assert_allclose(before[:, :6], after[:, :6], rtol=0, atol=OWN_ERROR)
    assert (np.abs(before - after).max(axis=(0, 2))[6:] > 0.1).all()
