"""The story grammar, its split by sentence, and the files of the model trained on it."""

import hashlib
import json
import random
from collections import Counter
from typing import Any

import pytest
from tokenizers import Tokenizer

from tests.support import ROOT
from training.stories import Split, sentences, split_of, stories, story, training_vocabulary, words

MODEL = ROOT / "gptrs" / "models" / "stories"
SPLITS: tuple[Split, ...] = ("train", "held_out")


@pytest.fixture(scope="module")
def samples() -> dict[Split, list[str]]:
    return {"train": list(stories(5000, "train")), "held_out": list(stories(500, "held_out"))}


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return json.loads((MODEL / "config.json").read_text())


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(MODEL / "tokenizer.json"))


@pytest.mark.slow
def test_held_out_stories_share_no_sentence_with_training_text(
    samples: dict[Split, list[str]],
) -> None:
    train, held_out = (
        {sentence for text in samples[split] for sentence in sentences(text)} for split in SPLITS
    )
    assert len(train) > 20_000
    assert len(held_out) > 2_000
    assert not train & held_out


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
def test_every_sentence_hashes_into_its_split(
    samples: dict[Split, list[str]], split: Split
) -> None:
    assert {split_of(s) for text in samples[split] for s in sentences(text)} == {split}


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
def test_a_story_is_six_to_twelve_sentences(samples: dict[Split, list[str]], split: Split) -> None:
    assert all(6 <= len(sentences(text)) <= 12 for text in samples[split])
    assert all(" ".join(sentences(text)) == text for text in samples[split])


@pytest.mark.slow
def test_no_sentence_is_common(samples: dict[Split, list[str]]) -> None:
    counts = Counter(s for text in samples["train"] for s in sentences(text))
    assert counts.most_common(1)[0][1] < 0.001 * counts.total()


def test_no_slot_is_left_unfilled(samples: dict[Split, list[str]]) -> None:
    text = " ".join(samples["train"] + samples["held_out"])
    assert not set(text) & set("{}[]<>|%_")
    assert "  " not in text
    assert " ," not in text


def test_the_first_stories_are_pinned() -> None:
    text = "\n".join([*stories(20, "train"), *stories(20, "held_out")])
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    assert digest == "7ea06769e7fa78876bc01b28b420a3b1", "another text needs another training"


def test_seeds_are_told_in_order() -> None:
    assert list(stories(3, "train", seed=5)) == [story(seed, "train") for seed in (5, 6, 7)]


def test_words_are_lower_case_without_punctuation() -> None:
    assert words("\"Oh no!\" cried Tom; it's 2 o'clock.") == [
        *("oh", "no", "cried", "tom", "it's", "2", "o'clock")
    ]


@pytest.mark.slow
def test_the_vocabulary_is_small_and_complete(samples: dict[Split, list[str]]) -> None:
    known = training_vocabulary()
    assert 400 <= len(known) <= 1000
    for text in (*samples["held_out"], *stories(1000, "train", seed=1_000_000)):
        assert known.issuperset(words(text))


def test_the_model_directory_is_small() -> None:
    assert {path.name for path in MODEL.iterdir()} == {
        *("config.json", "generation_config.json", "model.safetensors", "tokenizer.json")
    }
    assert sum(path.stat().st_size for path in MODEL.iterdir()) <= 4_000_000


def test_the_tensors_are_those_of_the_config(config: dict[str, Any]) -> None:
    data = (MODEL / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    assert header.pop("__metadata__") == {"format": "pt"}
    assert {entry["dtype"] for entry in header.values()} == {"F32"}

    n = config["n_embd"]
    shapes = {
        "transformer.wte.weight": [config["vocab_size"], n],
        "transformer.wpe.weight": [config["n_positions"], n],
        "transformer.ln_f.weight": [n],
        "transformer.ln_f.bias": [n],
    }
    for layer in range(config["n_layer"]):
        at = f"transformer.h.{layer}"
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"{at}.{norm}.weight": [n], f"{at}.{norm}.bias": [n]}
        for name, rows, columns in (
            ("attn.c_attn", n, 3 * n),
            ("attn.c_proj", n, n),
            ("mlp.c_fc", n, 4 * n),
            ("mlp.c_proj", 4 * n, n),
        ):
            shapes |= {f"{at}.{name}.weight": [rows, columns], f"{at}.{name}.bias": [columns]}
    assert {name: entry["shape"] for name, entry in header.items()} == shapes


def test_the_config_is_that_of_gpt2(config: dict[str, Any], tokenizer: Tokenizer) -> None:
    assert config["model_type"] == "gpt2"
    assert config["architectures"] == ["GPT2LMHeadModel"]
    assert config["tie_word_embeddings"] is True
    assert config["activation_function"] == "gelu_new"
    assert config["vocab_size"] == tokenizer.get_vocab_size()
    end = tokenizer.token_to_id("<|endoftext|>")
    generation = json.loads((MODEL / "generation_config.json").read_text())
    for fields in (config, generation):
        assert fields["bos_token_id"] == fields["eos_token_id"] == end


@pytest.mark.slow
def test_stories_fit_the_context(
    samples: dict[Split, list[str]], config: dict[str, Any], tokenizer: Tokenizer
) -> None:
    # The end mark takes one place more.
    assert all(len(tokenizer.encode(text).ids) < config["n_positions"] for text in samples["train"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "Once upon a time",
        "  two  spaces\n\nand\ttabs \r\n",
        "naïve café, Ærøskøbing, Straße",
        "日本語 العربية हिन्दी",
        "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301",
        "\x00\x01\x7f\ufeff\U0010ffff",
    ],
)
def test_the_tokenizer_round_trips(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_the_tokenizer_round_trips_random_text(tokenizer: Tokenizer) -> None:
    rng = random.Random(0)
    scalars = [*range(0xD800), *range(0xE000, 0x110000)]
    for _ in range(300):
        text = "".join(map(chr, rng.choices(scalars, k=20)))
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
