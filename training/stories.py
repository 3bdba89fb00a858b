"""Short children's stories from a grammar, split by sentence into training and held-out text.

A sentence belongs to one split for ever, by a hash of its own text. A story of a split is made
of sentences of that split alone, so no held-out story shares a sentence with the training text.
"""

import functools
import hashlib
import random
import re
from collections.abc import Iterator
from typing import Final, Literal, TypeVar

from training import words as w
from training.plots import BEATS, PLOTS

Split = Literal["train", "held_out"]
Facts = dict[str, str]
Slot = tuple[str, ...]
Pattern = tuple[str, tuple[Slot, ...]]

_HELD_OUT_ONE_IN: Final = 12
_SENTENCE_TRIES: Final = 200
_STORY_TRIES: Final = 50
_MOST_SENTENCES: Final = 11
_VOCABULARY_SAMPLE: Final = 4000

_T = TypeVar("_T")

_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SENTENCE_END: Final = re.compile(r'(?:(?<=[.!?])|(?<=[.!?]"))\s+(?=["A-Z])')
_HOLE: Final = re.compile(r"\[[^\]]*\]|<\w+>")
_TABLE: Final = re.compile(r"<(\w+)>")


def split_of(sentence: str) -> Split:
    """Tell which split a sentence belongs to; it depends on nothing but its text."""
    digest = hashlib.blake2b(sentence.encode(), digest_size=8).digest()
    return "held_out" if int.from_bytes(digest) % _HELD_OUT_ONE_IN == 0 else "train"


def sentences(story: str) -> list[str]:
    """Cut a story into its sentences, each with its quotation marks."""
    return _SENTENCE_END.split(story.strip())


def words(text: str) -> list[str]:
    """List the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def story(seed: int, split: Split) -> str:
    """Tell the story of one seed, all of its sentences from one split."""
    rng = random.Random(f"{split}:{seed}")
    for _ in range(_STORY_TRIES):
        told = _tell(rng, split)
        if told is not None:
            return told
    raise RuntimeError(f"no {split} story for seed {seed} in {_STORY_TRIES} tries")


def stories(n: int, split: Split, seed: int = 0) -> Iterator[str]:
    """Tell `n` stories, those of the seeds `seed`, `seed + 1`, and so on."""
    return (story(seed + i, split) for i in range(n))


@functools.cache
def training_vocabulary() -> frozenset[str]:
    """Collect the words of training stories, from a sample large enough to hold them all."""
    return frozenset(word for text in stories(_VOCABULARY_SAMPLE, "train") for word in words(text))


def _tell(rng: random.Random, split: Split) -> str | None:
    """Draw facts and a sentence for each beat; None if a beat has no sentence of the split."""
    plot = _pick(rng, _PLOT_NAMES)
    facts = _facts(rng, plot)
    told: list[str] = []
    for beat in _outline(rng, plot):
        patterns = _PATTERNS[beat]
        for _ in range(_SENTENCE_TRIES):
            sentence = _fill(rng, _pick(rng, patterns), facts)
            if split_of(sentence) == split:
                told.append(sentence)
                break
        else:
            return None
    return " ".join(told)


def _outline(rng: random.Random, plot: str) -> list[str]:
    """Choose which of the optional sentences a story has, within the bound on its length."""
    beats = _BEATS_OF[plot]
    optional = [beat for beat, is_optional in beats if is_optional]
    room = min(len(optional), _MOST_SENTENCES - (len(beats) - len(optional)))
    dropped: set[str] = set()
    for _ in range(len(optional) - int(rng.random() * (room + 1))):
        dropped.add(_pick(rng, tuple(beat for beat in optional if beat not in dropped)))
    return [beat for beat, _ in beats if beat not in dropped]


def _pick(rng: random.Random, options: tuple[_T, ...]) -> _T:
    # Only random() is promised to give the same numbers in every version of Python.
    return options[int(rng.random() * len(options))]


def _fill(rng: random.Random, pattern: Pattern, facts: Facts) -> str:
    draw = rng.random
    text, slots = pattern
    return text.format(*[slot[int(draw() * len(slot))] for slot in slots]) % facts


def _facts(rng: random.Random, plot: str) -> Facts:
    """Draw what stays the same from the first sentence of a story to its last."""
    boy = rng.random() < 0.5
    name, kind, he = _person(rng, boy)
    friend, friend_kind, she = _person(rng, not boy)
    while friend_kind == kind:
        friend, friend_kind, she = _person(rng, not boy)
    at, place = _pick(rng, w.PLACES)
    colour = _pick(rng, w.COLOURS)
    facts = {"N": name, "kind": kind, "M": friend, "mkind": friend_kind}
    facts |= {"he": he[0], "him": he[1], "his": he[2], "He": he[0].title(), "His": he[2].title()}
    facts |= {"mhe": she[0], "mhim": she[1], "mhis": she[2]}
    facts |= {"home": _pick(rng, w.HOMES), "where": _pick(rng, w.HOME_PLACES)}
    facts |= {"moral": _pick(rng, w.MORALS.get(plot, ("",))), "spot": _pick(rng, w.SPOTS)}
    match plot:
        case "lost" | "quarrel":
            item = _pick(rng, w.ITEMS)
            article = "an" if colour[0] in "aeiou" else "a"
            facts |= {"item": f"{colour} {item.noun}", "noun": item.noun, "use": item.use}
            facts |= {"an_item": f"{article} {colour} {item.noun}", "used": item.used}
            facts |= {"broke": item.broke, "mend": item.mend, "dream": f"the {item.noun}"}
        case "skill":
            skill = _pick(rng, w.SKILLS)
            while kind in w.BORN_TO.get(skill[0], ()):
                skill = _pick(rng, w.SKILLS)
            at, place = w.SKILL_PLACES[w.SKILLS.index(skill)]
            facts |= zip(("skill", "skilled", "fail", "tip", "success"), skill, strict=True)
        case "share":
            trouble, rescue = (text.format(**facts) for text in _pick(rng, w.TROUBLES))
            facts |= zip(("food", "short"), _pick(rng, w.FOODS), strict=True)
            facts |= {"trouble": trouble, "rescue": rescue, "dream": f"the {facts['short']}"}
        case "fear":
            fear = _pick(rng, w.FEARS)
            facts |= zip(("fear", "time", "sign", "advice", "truth"), fear, strict=True)
            facts["dream"] = friend
        case "build":
            project = _pick(rng, w.PROJECTS)
            keys = ("project", "purpose", "stuff", "disaster", "strong")
            facts |= zip(keys, project, strict=True)
            facts["dream"] = f"the {project[0]}"
        case "creature":
            creature = _pick(rng, w.CREATURES)
            facts |= zip(("creature", "plight", "care", "belongs"), creature, strict=True)
            facts["dream"] = f"the {creature[0]}"
        case "gift":
            facts |= zip(("gift", "material", "mishap"), _pick(rng, w.GIFTS), strict=True)
            facts["dream"] = f"the {facts['gift']}"
        case "plant":
            facts |= zip(("plant", "grown"), _pick(rng, w.PLANTS), strict=True)
            facts["dream"] = f"the {facts['plant']}"
        case _:
            clue = (text.format(colour=colour) for text in _pick(rng, w.CLUES))
            facts |= zip(("clue", "follow", "treasure"), clue, strict=True)
            facts |= {"spot": _pick(rng, w.CLUE_SPOTS), "dream": "their adventure"}
    facts |= {"at_place": f"{at} {place}", "to_place": f"to {place}"}
    return facts


def _person(rng: random.Random, boy: bool) -> tuple[str, str, tuple[str, str, str]]:
    """Draw a name and a kind, and add the pronouns."""
    human = rng.random() < 0.2
    name = _pick(rng, w.NAMES_HE if boy else w.NAMES_SHE)
    kind = ("boy" if boy else "girl") if human else _pick(rng, w.ANIMALS)
    return name, kind, (("he", "him", "his") if boy else ("she", "her", "her"))


def _table(name: str) -> Slot:
    """Look up a table; `<A_little>`, `<Adv>` and `<soon_low>` respell three of them."""
    if name == "A_little":
        return tuple(option.capitalize() for option in w.FREE["a_little"])
    if name == "Adv":
        return tuple(option.capitalize() for option in w.FREE["adv"])
    if name == "soon_low":
        return tuple(option[0].lower() + option[1:] for option in w.FREE["soon"])
    return w.FREE[name]


def _compile(pattern: str) -> Pattern:
    """Turn a pattern into a format for its slots, in which facts are `%(name)s`.

    A table that a pattern uses several times is dealt out among its slots, so that no sentence
    says "kind and kind".
    """
    uses = _TABLE.findall(pattern)
    dealt = dict.fromkeys(uses, 0)

    def options(name: str) -> Slot:
        dealt[name] += 1
        return _table(name)[dealt[name] - 1 :: uses.count(name)]

    def expand(text: str) -> Slot:
        hole = _TABLE.search(text)
        if hole is None:
            return (_with_facts(text),)
        head, tails = text[: hole.start()], options(hole[1])
        rests = expand(text[hole.end() :])
        return tuple(_with_facts(head + tail) + rest for tail in tails for rest in rests)

    slots: list[Slot] = []
    fixed: list[str] = []
    position = 0
    for hole in _HOLE.finditer(pattern):
        fixed.append(pattern[position : hole.start()])
        position = hole.end()
        choices = hole[0][1:-1].split("|") if hole[0][0] == "[" else [hole[0]]
        slots.append(_level([expand(choice) for choice in choices]))
    fixed.append(pattern[position:])
    return "{}".join(map(_with_facts, fixed)), tuple(slots)


def _level(choices: list[Slot]) -> Slot:
    """Join the expanded choices, repeated so that each choice keeps about the same chance."""
    most = max(map(len, choices))
    return tuple(text for choice in choices for text in choice * (most // len(choice)))


def _with_facts(text: str) -> str:
    return re.sub(r"\{(\w+)\}", r"%(\1)s", text)


_PATTERNS: Final = {name: tuple(map(_compile, texts)) for name, texts in BEATS.items()}
_BEATS_OF: Final = {
    plot: tuple((beat.rstrip("?"), beat.endswith("?")) for beat in text.split())
    for plot, text in PLOTS.items()
}
_PLOT_NAMES: Final = tuple(PLOTS)
