"""Tiny GPT-2 directories that chat, and a model in NumPy that gives an answer by heart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gptrs.text.chat import ChatModel
from gptrs.text.chat_template import ChatTemplate
from tests.support.chat_templates import CHAT_ML
from tests.support.fake_model import TOKENIZER, FakeModel, saying
from tests.support.models import END, byte_tokenizer, tiny_gpt2

TURNS = ("<|im_start|>", "<|im_end|>")


def chat_tokenizer() -> Any:
    """The tokenizer of tiny models, with the special tokens of ChatML."""
    made: Any = byte_tokenizer()
    made.add_special_tokens(list(TURNS))
    return made


CHAT_VOCABULARY = chat_tokenizer().get_vocab_size()


def tiny_chat(directory: Path, template: str = CHAT_ML, **fields: Any) -> Path:
    """A directory of a model with random weights that has a chat template; ``fields`` replace
    entries of the config."""
    settings: Any = {"vocab_size": CHAT_VOCABULARY, "n_positions": 200, **fields}
    made = tiny_gpt2(directory, **settings)
    chat_tokenizer().save(str(made / "tokenizer.json"))
    config = {"eos_token": {"content": TURNS[1]}, "bos_token": END, "chat_template": template}
    (made / "tokenizer_config.json").write_text(json.dumps(config))
    return made


def by_heart(
    template: str,
    messages: list[dict[str, Any]],
    answer: str,
    tools: list[dict[str, Any]] | None = None,
) -> tuple[ChatModel, FakeModel]:
    """A model that answers ``messages`` with ``answer``, and then ends."""
    made = ChatTemplate(template, "here", {"eos_token": END, "bos_token": ""})
    prompt = made.render(messages, tools=tools, add_generation_prompt=True)
    model = FakeModel(saying(prompt + answer), context_length=2000)
    end = TOKENIZER.token_id(END)
    assert end is not None
    return ChatModel(model, TOKENIZER, made, (end,), {}, "by heart"), model
