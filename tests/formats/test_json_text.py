"""JSON in files: duplicate names and invalid texts are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gptrs
from gptrs.errors import LoadError
from gptrs.formats.checkpoint import CheckpointFile
from gptrs.formats.json_text import RepeatedName, members, parse
from tests.support.image_models import resnet
from tests.support.models import tiny_gpt2

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=9,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), VALUES), st.sampled_from([None, 1]), st.booleans())
def test_members_are_those_of_the_object(
    value: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    text = f" \n{json.dumps(value, indent=indent, ensure_ascii=ascii_only)}\t "
    assert dict(members(text)) == parse(text) == value


@given(st.text('{}[]",:\\ u0\n\u00e9', max_size=12))
def test_what_is_no_object_is_refused(text: str) -> None:
    try:
        value: object = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        assert dict(members(text)) == value
    else:
        with pytest.raises(ValueError, match=r"."):
            list(members(text))


def test_a_name_of_a_part_is_there_twice() -> None:
    text = '{"a": [{"b": 1, "c": 2, "b": 1}]}'
    with pytest.raises(RepeatedName, match="the name 'b' is there twice, expected once"):
        parse(text)
    with pytest.raises(RepeatedName, match="the name 'b' is there twice, expected once"):
        list(members(text))


def repeat(name: str) -> Callable[[bytes], bytes]:
    """Gives an object the entry ``name`` a second time."""
    return lambda content: content[: content.rindex(b"}")] + f', "{name}": 1}}'.encode()


def write_model(path: Path) -> None:
    resnet(path, num_labels=3, id2label={0: "cat", 1: "dog", 2: "owl"})
    recipe = {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}}
    (path / "preprocessor_config.json").write_text(json.dumps(recipe))


def use_text(path: Path) -> None:
    gptrs.load(path)


def use_images(path: Path) -> None:
    _ = gptrs.load(path).preprocessor


FILES: dict[str, tuple[Callable[[Path], object], Callable[[Path], object], str]] = {
    "config.json": (tiny_gpt2, use_text, "n_embd"),
    "generation_config.json": (tiny_gpt2, use_text, "eos_token_id"),
    "model.safetensors.index.json": (tiny_gpt2, use_text, "weight_map"),
    "preprocessor_config.json": (write_model, use_images, "size"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_files_that_say_a_thing_twice(tmp_path: Path, name: str) -> None:
    make, use, field = FILES[name]
    make(tmp_path)
    file = tmp_path / name
    if name.startswith("model."):
        (tmp_path / "model.safetensors").rename(tmp_path / "a.safetensors")
        file.write_text(json.dumps({"weight_map": {"a": "a.safetensors"}}))
    elif not file.exists():
        file.write_text(json.dumps({field: 1}))
    file.write_bytes(repeat(field)(file.read_bytes()))
    with pytest.raises(LoadError) as raised:
        use(tmp_path)
    assert raised.value.problem == f"{file}: the name '{field}' is there twice, expected once"
    assert raised.value.fix


def test_a_checkpoint_that_says_a_thing_twice(tmp_path: Path) -> None:
    text = b'{"kind":"gpt","config":{"n_embd":1,"n_embd":2}}'
    head = b"GPTRSCHK" + (2).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    (tmp_path / "x").write_bytes(head + text + (4).to_bytes(4, "little") + bytes(4))
    with pytest.raises(LoadError, match="x: config_json: the name 'n_embd' is there twice"):
        CheckpointFile.open(tmp_path / "x")
