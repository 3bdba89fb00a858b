"""Train the built-in story model: `python -m training.train --out gptrs/models/stories`.

The model and its files are those of a Hugging Face GPT-2, written in plain torch.
"""

# torch and tokenizers leave some of their own signatures without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

import argparse
import json
import math
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from safetensors.torch import load, save
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from torch.nn import functional as nnf

from training.gpt2 import GPT2, Config
from training.stories import stories, training_vocabulary, words

END: Final = "<|endoftext|>"
VOCABULARY: Final = 1024
STORIES: Final = 60_000
HELD_OUT_STORIES: Final = 256
PROMPTS: Final = 100
PROMPT_WORDS: Final = 8
BATCH: Final = 8
WARM_UP: Final = 150
RATE: Final = 3e-3
LAST_RATE: Final = 1e-4

console = Console()


def make_tokenizer(texts: list[str]) -> Tokenizer:
    """Train a byte-level BPE as GPT-2 has it; with all bytes in it, any text can be encoded."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def end_id(tokenizer: Tokenizer) -> int:
    """Give the id of the end mark."""
    end = tokenizer.token_to_id(END)
    assert end is not None
    return end


def windows(
    stream: Tensor, starts: Tensor, length: int, steps: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Draw batches of inputs and targets from the joined stories.

    Most windows open where a prompt would: on the end mark before a story, or on its first word.
    """
    rng = torch.Generator().manual_seed(seed)
    reach = len(stream) - length - 1
    starts = starts[starts + 1 < reach]
    span = torch.arange(length + 1)
    for _ in range(steps):
        story = starts[torch.randint(len(starts), (BATCH,), generator=rng)]
        anywhere = torch.randint(reach, (BATCH,), generator=rng)
        chance = torch.rand(BATCH, generator=rng)
        first = torch.where(chance < 0.4, story, torch.where(chance < 0.8, story + 1, anywhere))
        batch = stream[first[:, None] + span]
        yield batch[:, :-1], batch[:, 1:]


def learning_rate(step: int, steps: int) -> float:
    """Rise in a line, then fall along half a cosine."""
    if step < WARM_UP:
        return RATE * (step + 1) / WARM_UP
    turn = math.pi * (step - WARM_UP) / max(1, steps - WARM_UP)
    return LAST_RATE + 0.5 * (RATE - LAST_RATE) * (1 + math.cos(turn))


@torch.no_grad()
def held_out_loss(model: GPT2, tokenizer: Tokenizer) -> float:
    """Give the mean loss in nats per token of held-out stories, each read from its end mark."""
    total, count = 0.0, 0
    for text in stories(HELD_OUT_STORIES, "held_out"):
        ids = torch.tensor([tokenizer.encode(f"{END}{text}{END}").ids])
        ids = ids[:, : model.config.n_positions + 1]
        logits = model(ids[:, :-1])
        total += nnf.cross_entropy(logits[0], ids[0, 1:], reduction="sum").item()
        count += ids.shape[1] - 1
    return total / count


def train(model: GPT2, tokenizer: Tokenizer, texts: list[str], steps: int, seed: int) -> float:
    """Fit the model to the joined stories and give the mean loss of the last batches."""
    end = end_id(tokenizer)
    stream: list[int] = []
    starts: list[int] = []
    for encoding in tokenizer.encode_batch(texts):
        starts.append(len(stream))
        stream += [end, *encoding.ids]
    console.print(f"{len(texts):,} stories, {len(stream):,} tokens")
    named = dict(model.named_parameters())
    matrices = [p for name, p in named.items() if p.dim() == 2 and ".h." in name]
    others = [p for name, p in named.items() if p.dim() < 2 or ".h." not in name]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True)
    batches = windows(
        torch.tensor(stream), torch.tensor(starts), model.config.n_positions, steps, seed
    )
    mean = math.log(model.config.vocab_size)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=steps)
        for step, (inputs, targets) in enumerate(batches):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, steps)
            loss = nnf.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            mean += (loss.item() - mean) * max(0.01, 1 / (step + 1))
            progress.update(task, advance=1, description=f"loss {mean:.3f}")
            if (step + 1) % 500 == 0:
                held_out = held_out_loss(model, tokenizer)
                console.print(f"step {step + 1}: training {mean:.4f}, held-out {held_out:.4f}")
    return mean


def known_share(
    model: GPT2, tokenizer: Tokenizer, temperature: float, seed: int
) -> tuple[float, list[str]]:
    """Continue held-out openings; give the share of generated words that are known, and texts."""
    openings = [
        " ".join(text.split()[:PROMPT_WORDS])
        for text in stories(PROMPTS, "held_out", HELD_OUT_STORIES)
    ]
    prompts = [tokenizer.encode(opening).ids for opening in openings]
    end = end_id(tokenizer)
    told = model.generate(prompts, end, temperature, torch.Generator().manual_seed(seed))
    texts = [tokenizer.decode(ids) for ids in told]
    new = [
        word
        for opening, text in zip(openings, texts, strict=True)
        for word in words(text)[len(words(opening)) :]
    ]
    known = training_vocabulary()
    return sum(word in known for word in new) / len(new), texts


def write(path: Path, data: bytes) -> None:
    """Put a whole file in place at once, so that no reader ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    os.replace(part, path)


def as_json(value: object) -> bytes:
    """Write a value as indented JSON that ends in a newline."""
    return (json.dumps(value, indent=2) + "\n").encode()


def write_model(folder: Path, model: GPT2, tokenizer: Tokenizer) -> None:
    """Write the files of a Hugging Face GPT-2 directory."""
    end = end_id(tokenizer)
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    write(folder / "model.safetensors", save(tensors, {"format": "pt"}))
    write(folder / "tokenizer.json", tokenizer.to_str().encode())
    write(folder / "config.json", as_json(model.config.hugging_face(end)))
    ids = {"bos_token_id": end, "eos_token_id": end}
    write(folder / "generation_config.json", as_json({"_from_model_config": True, **ids}))


def read_model(folder: Path) -> tuple[GPT2, Tokenizer]:
    """Read back what `write_model` has written."""
    fields = json.loads((folder / "config.json").read_text())
    model = GPT2(Config(**{name: fields[name] for name in Config.__dataclass_fields__}))
    model.load_state_dict(load((folder / "model.safetensors").read_bytes()))
    return model, Tokenizer.from_file(str(folder / "tokenizer.json"))


def main() -> None:
    """Train, write the model and its figures, and check the files by reading them back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("gptrs/models/stories"))
    options = parser.parse_args()
    steps: int = options.steps
    seed: int = options.seed
    out: Path = options.out

    torch.set_num_threads(2)
    torch.manual_seed(seed)
    begin = time.perf_counter()
    texts = list(stories(STORIES, "train"))
    random.Random(seed).shuffle(texts)
    tokenizer = make_tokenizer(texts)
    model = GPT2(Config(vocab_size=tokenizer.get_vocab_size()))
    training_loss = train(model, tokenizer, texts, steps, seed)
    seconds = time.perf_counter() - begin

    write_model(out, model, tokenizer)
    loss = held_out_loss(model, tokenizer)
    again = held_out_loss(*read_model(out))
    if loss != again:
        raise SystemExit(f"the files read back give a loss of {again}, not {loss}")

    greedy, _ = known_share(model, tokenizer, 0.0, seed)
    sampled, samples = known_share(model, tokenizer, 0.8, seed)
    figures = {
        "steps": steps,
        "seed": seed,
        "stories": STORIES,
        "training_loss": round(training_loss, 4),
        "held_out_loss": round(loss, 4),
        "held_out_stories": HELD_OUT_STORIES,
        "parameters": sum(p.numel() for p in model.parameters()),
        "bytes": sum(path.stat().st_size for path in out.iterdir()),
        "training_seconds": round(seconds),
        "prompts": PROMPTS,
        "known_words_greedy": round(greedy, 4),
        "known_words_temperature_0.8": round(sampled, 4),
    }
    write(Path(__file__).with_name("figures.json"), as_json(figures))
    console.print_json(data=figures)
    for text in samples[:3]:
        console.print(text + "\n", markup=False, highlight=False)


if __name__ == "__main__":
    main()
