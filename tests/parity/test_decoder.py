"""Decoder language models against transformers' models of the same configuration, and against
themselves with a cache.

``python -m tests.parity.test_decoder [count] [seed]`` compares random configurations.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gptrs
from gptrs.models.decoder import Decoder
from gptrs.models.registry import MODELS
from tests.parity.decoder_configs import ALIKE, CONFIGS, fields_of, random_fields
from tests.support.lazy_torch import torch, transformers

pytestmark = pytest.mark.slow

TORCH_ERROR = 1e-4  # of f32 programs that sum in different orders, logits of order 1 to 10
RANDOM = 20
NEW = 12  # tokens


def reference(fields: dict[str, Any], seed: int = 0) -> Any:
    """transformers' model with random weights, biases and norms among them."""
    torch.set_num_threads(1)
    configs: Any = transformers.AutoConfig
    models: Any = transformers.AutoModelForCausalLM
    options = {"dtype": torch.float32, "attn_implementation": "eager"}
    # Their grouped products take no rows of fewer than 16 bytes.
    options["experts_implementation"] = "eager"
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
    model = models.from_config(configs.for_model(**fields), **options).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def tokens_of(fields: dict[str, Any], *shape: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(3, fields["vocab_size"], shape)


def continued(model: Any, ids: NDArray[np.int64]) -> list[int]:
    """The tokens that transformers generates after ``ids``, and how sure it is of each."""
    with torch.no_grad():
        options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
        found = model.generate(torch.as_tensor(ids[None]), max_new_tokens=NEW, **options)
    return found[0, len(ids) :].tolist()


def compare(fields: dict[str, Any], seed: int = 0) -> None:
    """Logits of rows and of a left-padded batch, and greedy tokens with a cache."""
    call: Any = Decoder.__call__
    call.clear_cache()  # of programs: there are more configurations than it is for
    theirs = reference(fields, seed)
    ours: Any = gptrs.from_torch(theirs)
    ids = tokens_of(fields, 2, 13)
    with torch.no_grad():
        expected = theirs(torch.as_tensor(ids)).logits.numpy()
        shorter = theirs(torch.as_tensor(ids[:1, :8])).logits.numpy()
    found = ours.forward(ids).numpy()
    np.testing.assert_allclose(found, expected, rtol=TORCH_ERROR, atol=TORCH_ERROR)
    ours_next = [*ours.stream_tokens(ids[0].tolist(), max_tokens=NEW, ignore_eos=True)]
    theirs_next = continued(theirs, ids[0])
    for step, (mine, other) in enumerate(zip(ours_next, theirs_next, strict=True)):
        if mine != other:  # right if both are as likely, to rounding
            text = [*ids[0], *theirs_next[:step]]
            with torch.no_grad():
                logits = theirs(torch.as_tensor([text])).logits[0, -1]
            assert abs(float(logits[mine] - logits[other])) < TORCH_ERROR, (ours_next, theirs_next)
            break
    model = ours.module
    cache = model.init_cache(np.array([0, 5], np.int32), 16)
    padded = ids.copy()
    padded[1, 5:] = ids[0, :8]
    logits, cache = model(padded[:, :9], cache)
    last, _ = model(padded[:, 9:], cache)
    both = np.concatenate([np.asarray(logits), np.asarray(last)], 1)
    np.testing.assert_allclose(both[0], expected[0], rtol=TORCH_ERROR, atol=TORCH_ERROR)
    np.testing.assert_allclose(both[1, 5:], shorter[0], rtol=TORCH_ERROR, atol=TORCH_ERROR)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_family(name: str) -> None:
    compare(fields_of(name))


@pytest.mark.parametrize("prefix", ["language_model.", "model.language_model."])
def test_the_language_part_of_a_larger_model(prefix: str) -> None:
    """Gemma 3 with images: a nested configuration, names of either version of transformers, and
    tensors of its other parts."""
    fields = fields_of("gemma3_text")
    theirs = reference(fields)
    plain: dict[str, Any] = dict(theirs.state_dict())
    del plain["lm_head.weight"]
    own = "model." if prefix.startswith("language") else ""
    state = {f"{prefix}{own}{n.removeprefix('model.')}": value for n, value in plain.items()}
    state["vision_tower.patch.weight"] = torch.zeros(2, 2)
    config = {"model_type": "gemma3", "text_config": fields, "mm_tokens_per_image": 256}
    ids = tokens_of(fields, 1, 9)
    with torch.no_grad():
        expected = theirs(torch.as_tensor(ids)).logits.numpy()
    found = gptrs.from_torch(state, config=config).forward(ids).numpy()
    np.testing.assert_allclose(found, expected, rtol=TORCH_ERROR, atol=TORCH_ERROR)


def test_every_decoder_has_a_row() -> None:
    kinds = {kind for kind, place in MODELS.items() if "families" in place}
    assert {ALIKE.get(kind, kind) for kind in kinds} == {n.partition(",")[0] for n in CONFIGS}


@pytest.mark.parametrize("seed", range(RANDOM))
def test_random_configurations(seed: int) -> None:
    compare(random_fields(random.Random(seed)), seed)


def main() -> None:
    given = [int(text) for text in sys.argv[1:3]]
    count, first = [*given, *(200, 0)[len(given) :]]
    wrong = 0
    for seed in range(first, first + count):
        fields = random_fields(random.Random(seed))
        try:
            compare(fields, seed)
        except Exception as error:
            wrong += 1
            print(seed, fields, str(error)[:500], flush=True)
    print(f"{count - wrong} of {count} configurations agree with transformers")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
