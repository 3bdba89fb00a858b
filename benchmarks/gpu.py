"""GPT-2 124M and ResNet34 with random weights on a device, beside torch itself on it.

    python -m benchmarks.gpu [--backend cuda|rocm|metal|xpu|torch] [--rounds 7] [--prompt 512]
                             [--new 64] [--batch 8] [--tiny] [--json FILE]

- decode: tokens/s after a prompt of 16 tokens, one at a time, the greatest logit each
- prefill: ms from a prompt to the logits of its last token
- resnet34: ms from a batch of images on the device to their logits

torch runs transformers' models in inference mode, with their own attention and cache, as they come
and without TF32, from the same weights. Before timing, logits must agree. The two take turns; each
time ends when the device has. `GPTRS_TORCH_GRAPHS=1` and `GPTRS_TORCH_COMPILE=inductor` apply to
ours. Figures are worth keeping from a GPU alone: ``torch``, the device that the CPU plays, and
``--tiny`` try the script.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
import transformers

import gptrs
from benchmarks.vision_directory import CONFIGS
from gptrs import ptir
from gptrs.backends.selection import backend_status, selected

TYPES = {"cuda": "cuda", "rocm": "cuda", "metal": "mps", "xpu": "xpu", "torch": "cpu"}
CLOSE = 2e-3
"""How far logits of order 1 may lie apart after the sums of a dozen layers."""
TINY: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 48, "n_layer": 2, "n_head": 4, "vocab_size": 500, "n_positions": 128},
    "resnet": {"depths": (1, 1, 1, 1), "hidden_sizes": (8, 8, 16, 16), "embedding_size": 8},
}


class Bench:
    """What is measured on one device."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.device = torch.device(TYPES[options.backend])
        self.rng = np.random.default_rng(0)

    def models(self, config: dict[str, Any], kind: str) -> tuple[Any, Any]:
        """Ours, and transformers' model on the device, of the same random weights."""
        small = TINY[config["model_type"]] if self.options.tiny else {}
        torch.manual_seed(0)
        fields = transformers.AutoConfig.for_model(**(config | small))
        theirs: Any = getattr(transformers, kind)(fields).eval()
        theirs.save_pretrained(self.folder / kind)
        return gptrs.load(self.folder / kind).module, theirs.to(self.device)

    def wait(self) -> None:
        """Until the device has done what it was given."""
        module = getattr(torch, self.device.type)
        if self.device.type != "cpu":
            module.synchronize()

    def times(self, sides: dict[str, Callable[[], object]]) -> dict[str, float]:
        """Median seconds of each, after two runs that compile; they take turns."""
        found: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(self.options.rounds + 3):
            for name, run in sides.items():
                self.wait()
                start = perf_counter()
                run()
                self.wait()
                if turn > 2:
                    found[name].append(perf_counter() - start)
        return {name: median(each) for name, each in found.items()}

    def gpt2(self) -> dict[str, dict[str, float]]:
        """Decode in tokens/s, prefill in ms."""
        ours, theirs = self.models({"model_type": "gpt2"}, "GPT2LMHeadModel")
        vocabulary = theirs.config.vocab_size
        prompt = self.rng.integers(0, vocabulary, (1, self.options.prompt))
        there = torch.from_numpy(prompt).to(self.device)
        given = ptir.tensor(prompt).to_device(self.options.backend)

        def our_prefill() -> np.ndarray[Any, Any]:
            return ours(given, None, logits="last")[0].numpy()

        def their_prefill() -> Any:
            return theirs(there, logits_to_keep=1).logits.cpu()

        check(our_prefill(), their_prefill().numpy())
        steps = self.options.new
        prefill = self.times({"ours": our_prefill, "torch": their_prefill})
        short = prompt[:, :16]

        @ptir.jit(donate="cache", backend=self.options.backend)
        def step(tokens: Any, cache: Any) -> Any:
            logits, cache = ours(tokens, cache, logits="last")
            return ptir.argmax(logits, axis=-1), cache

        def our_decode() -> list[int]:
            cache = ours.init_cache(np.zeros(1, np.int32), 16 + steps)
            token, cache = step(ptir.tensor(short), cache)
            made = [token]
            for _ in range(steps - 1):
                token, cache = step(token, cache)
                made.append(token)
            return [int(t.item()) for t in made]

        def their_decode() -> list[int]:
            found = theirs(torch.from_numpy(short).to(self.device), use_cache=True)
            made = [found.logits[:, -1:].argmax(-1)]
            for _ in range(steps - 1):
                found = theirs(made[-1], past_key_values=found.past_key_values, use_cache=True)
                made.append(found.logits[:, -1:].argmax(-1))
            return torch.cat(made, 1)[0].tolist()

        if our_decode() != their_decode():
            raise SystemExit("greedy tokens differ")
        decode = self.times({"ours": our_decode, "torch": their_decode})
        return {
            "decode, tokens/s": {name: steps / each for name, each in decode.items()},
            "prefill, ms": {name: each * 1e3 for name, each in prefill.items()},
        }

    def resnet(self) -> dict[str, dict[str, float]]:
        """ms a batch."""
        ours, theirs = self.models(CONFIGS["resnet34"], "ResNetForImageClassification")
        images = self.rng.normal(size=(self.options.batch, 224, 224, 3)).astype(np.float32)
        given = ptir.tensor(images).to_device(self.options.backend)
        there = torch.from_numpy(images).permute(0, 3, 1, 2).to(self.device)

        def our_logits() -> np.ndarray[Any, Any]:
            return ours(given).numpy()

        def their_logits() -> Any:
            return theirs(there).logits.cpu()

        check(our_logits(), their_logits().numpy())
        found = self.times({"ours": our_logits, "torch": their_logits})
        return {"resnet34, ms": {name: each * 1e3 for name, each in found.items()}}


def check(ours: Any, theirs: Any) -> None:
    """End the script where logits differ."""
    far = float(np.max(np.abs(ours - theirs)))
    if not far < CLOSE * max(1.0, float(np.max(np.abs(theirs)))):
        raise SystemExit(f"logits differ by {far}")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--backend", choices=TYPES, default="cuda")
    for name, value in (("rounds", 7), ("prompt", 512), ("new", 64), ("batch", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--tiny", action="store_true", help="small models, to try the script")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    selected(options.backend)  # or why it cannot be had
    (device, *_) = backend_status(options.backend).devices
    with (
        tempfile.TemporaryDirectory() as folder,
        torch.inference_mode(),
        ptir.backend(options.backend),
    ):
        bench = Bench(options, Path(folder))
        torch.backends.cudnn.allow_tf32 = False  # as ours
        figures = bench.gpt2() | bench.resnet()
    print(f"{device.name}, torch {torch.__version__}")
    for mode, sides in figures.items():
        print(f"{mode:20}" + "".join(f"  {name} {each:10.4g}" for name, each in sides.items()))
    if options.json is not None:
        about = {"device": device.name, "torch": torch.__version__, "tiny": options.tiny}
        options.json.write_text(json.dumps({**about, "figures": figures}, indent=1))


if __name__ == "__main__":
    main()
