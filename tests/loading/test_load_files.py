"""Invalid configurations and tokenizers, and special files: all refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import gptrs
from gptrs.loading.language_model import LanguageModel
from gptrs.models import MODELS
from tests.support.loading import WEIGHTS, change_config, refusal
from tests.support.models import VOCABULARY, byte_tokenizer, config
from tests.support.traced_memory import least_peak


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
        refusal(
            directory,
            "config.json",
            f"model_type is {kind!r}",
            f"expected one of {', '.join(sorted(MODELS))}",
        )

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
            ("activation_function", "gelu_2027", "expected one of gelu, gelu_10, gelu_"),
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
        said = "config.json has 134217728 bytes, expected at most 67108864"
        assert least_peak(lambda: refusal(directory, said)) < 10**6

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
