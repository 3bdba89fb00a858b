"""The plan of a comparison: model, threads, sizes, peers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gptrs.errors import ArgumentError
from gptrs_bench.peers import GPT2, IMAGES

PREFILL, DECODE, LATENCY, START = "prefill", "decode", "latency", "start"
UNITS = {PREFILL: "ms", DECODE: "tokens/s", LATENCY: "ms", START: "s"}
TEXT_MODES, IMAGE_MODES = (PREFILL, DECODE, START), (LATENCY, START)
PEERS = tuple(dict.fromkeys([*GPT2.required, *IMAGES.required]))
TOKENS, IMAGES_AT_ONCE = (64,), (1,)
"""What is measured where nothing is said."""


@dataclass(frozen=True)
class Case:
    """What is timed: of ``count`` tokens or images."""

    mode: str
    count: int

    @property
    def unit(self) -> str:
        return UNITS[self.mode]


@dataclass(frozen=True)
class Run:
    """A model, or the configuration of one with random weights, and how it is measured.

    Empty ``modes`` are all that the model has, empty ``threads`` as many as there are cores.
    """

    model: str = ""
    random: Path | None = None
    threads: tuple[int, ...] = ()
    bench_tokens: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    modes: tuple[str, ...] = ()
    against: tuple[str, ...] = ("torch",)
    rounds: int = 7
    backend: str = ""

    def __post_init__(self) -> None:
        if bool(self.model) == (self.random is not None):
            found = "neither a model nor a random one" if self.random is None else "both of them"
            raise ArgumentError(
                f"{found}, expected a model or the config.json of a random one",
                fix="give one of the two",
            )
        for name in ("threads", "bench_tokens", "batch"):
            for wrong in [count for count in getattr(self, name) if count < 1][:1]:
                raise ArgumentError(f"{name} has {wrong}, expected integers from 1 up")
        if self.rounds < 1:
            raise ArgumentError(f"rounds is {self.rounds}, expected an integer from 1 up")
        known = tuple(UNITS)
        for name, given, there in (("modes", self.modes, known), ("against", self.against, PEERS)):
            for unknown in sorted(set(given) - set(there))[:1]:
                raise ArgumentError(f"{name} has {unknown!r}, expected some of {', '.join(there)}")

    @property
    def label(self) -> str:
        """What its results call the model."""
        return self.model or str(self.random)

    def text_cases(self, context: int) -> list[Case]:
        """Those of a language model. Raises `ArgumentError` for what its context cannot hold."""
        self._refuse("batch", self.batch, "is of image models, and this one takes text")
        cases = self._cases(TEXT_MODES, self.bench_tokens or TOKENS)
        for case in cases:
            if case.count + 2 * (case.mode == DECODE) > context:  # a prompt, and the last token
                raise ArgumentError(
                    f"bench_tokens has {case.count}, and {self.label} has a context of {context}",
                    fix="ask for fewer; decode needs room for two more",
                )
        return cases

    def image_cases(self) -> list[Case]:
        """Those of an image classifier. Raises `ArgumentError`."""
        tokens = self.bench_tokens
        self._refuse("bench_tokens", tokens, "is of language models, and this one takes images")
        return self._cases(IMAGE_MODES, self.batch or IMAGES_AT_ONCE)

    def _refuse(self, name: str, given: tuple[int, ...], why: str) -> None:
        if given:
            raise ArgumentError(f"{name} {why}: {self.label}", fix="leave it out")

    def _modes(self, there: tuple[str, ...]) -> tuple[str, ...]:
        for wrong in [mode for mode in self.modes if mode not in there][:1]:
            raise ArgumentError(
                f"modes has {wrong!r}, and {self.label} has {', '.join(there)}",
                fix="leave it out",
            )
        return self.modes or there

    def _cases(self, there: tuple[str, ...], counts: tuple[int, ...]) -> list[Case]:
        return [
            Case(mode, count)
            for mode in self._modes(there)
            for count in ((1,) if mode == START else counts)
        ]
