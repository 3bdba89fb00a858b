"""The plots of the story grammar: which sentences a story has, and how each may be worded.

A pattern holds facts of the story as `{fact}`, words drawn anew as `<table>`, and choices
written out as `[one|another]`. The hero is always `{he}`, the friend always `{mhe}`, and the two
are never of the same gender, so that every pronoun has one meaning.
"""

from typing import Final

from training import beats_alone, beats_together

# Sentences of one kind, by name; a story takes one of its patterns.
BEATS: Final[dict[str, tuple[str, ...]]] = {
    "opening": (
        "<once>, there was <a_little> {kind} named {N} who lived in a {home} {where}.",
        "<once>, <a_little> {kind} named {N} lived in a {home} {where} with {his} <family>.",
        "{N} was <a_little> {kind} who lived in a {home} {where}[ with {his} <family>|].",
        "In a {home} {where} lived <a_little> {kind} named {N}, who liked to <hobby>.",
    ),
    "trait": (
        "{He} was <very> <trait> and <trait>, and {he} loved to <hobby>.",
        "Every <part>, {N} liked to <hobby> and <hobby>.",
        "Everyone [nearby|around|who met {him}] knew {N} as a <trait> and <trait> {kind}.",
        "{His} <family> always said that {N} was the most <trait> {kind} of all.",
    ),
    "known_friend": (
        "{His} best friend was <a_little> {mkind} named {M}, who liked to <hobby>.",
        "{N} had a [good|true|dear|close] friend, <a_little> {mkind} named {M}[, who lived "
        "next door|].",
        "{N} and {his} friend {M}, <a_little> {mkind}, liked to <hobby> together.",
    ),
    "meet": (
        "<then>, <a_little> {mkind} named {M} [came by|came along|walked by|stopped] [and saw "
        "{him}|to say hello|on {mhis} way home|with a <trait> smile].",
        "<then>, {N} met <a_little> {mkind} named {M}, who [lived nearby|was out for a walk|"
        "was on {mhis} way home|was looking for berries|had heard {him}].",
        "<A_little> {mkind} named {M} [heard {him}|saw {him}|noticed {him}] and [came closer|"
        "came over|sat down beside {him}|stopped to help|wanted to help].",
    ),
    "why_sad": (
        '"[Why are you|What makes you] so [sad|worried|quiet], <dear>?" asked {M} <softly>.',
        '"[What is wrong|What is the matter|Can I help you], <dear>?" asked {M} <softly>.',
    ),
    "night": (
        "That [night|evening], {N} [went to bed|went to sleep|slept well|fell asleep] in the "
        "{home} and dreamed of [{dream}|<nature> and {dream}|{dream} and <nature>].",
        "That [night|evening], {N} told {his} <family> [all about|everything about|a story "
        "about] {dream} [over some <food>|before bed|at dinner|by the fire|and fell asleep].",
        "When the [moon|first star] [came up|rose], {N} and {M} sat [outside|in front of|"
        "near] the {home} and [ate|shared] [some |]<food>.",
    ),
    "friends": (
        "From that day on, {N} and {M} were [the best of friends|best friends|always "
        "together], and [every <part>|on <weather> days] they liked to <hobby>.",
        "{N} and {M} [walked|went|skipped|danced] [home|back to the {home}] [together|side by "
        "side|hand in hand], [<glad> and <glad>|as <glad> as could be].",
        "And [ever since|from then on|since that day], {N} and {M} [never forgot|always "
        "remembered|liked to talk about] {dream} [on <weather> days|when they met].",
    ),
    "moral": (
        "{N} had learned that {moral}, and {he} felt <very> <glad> and <glad>.",
        '"Now I know that {moral}," [said|whispered] {N} [<gladly>|to {his} <family>].',
        "Every <weather> <part> after that, {N} [knew|remembered|told everyone] that {moral}.",
    ),
    "thanks": (
        '"[Thank you|Thank you so much|Oh, thank you|Many thanks], <mdear>!" <cried> {N} <gladly>.',
        '"[You are|You have been] <very> [kind|clever|brave|helpful|good to me], <mdear>," '
        "said {N} <gladly>.",
    ),
    "own": (
        "{N} had {an_item}, and {he} liked to {use} [with {his} <family>|on <weather> days].",
        "For {his} birthday, {his} <family> had given {him} {an_item}, and {he} was <very> <glad>.",
        "{His} [favourite thing|dearest treasure|best toy] was {an_item} [from|made by] {his} "
        "[<trait> |]<family>.",
    ),
    **beats_alone.BEATS,
    **beats_together.BEATS,
}

# Each plot: its sentences in order, those with a question mark only in some stories.
PLOTS: Final[dict[str, str]] = {
    "lost": "opening trait? own lost search? oh_lost? meet why_sad? cry_lost offer_search "
    "found cheer_found? thanks? use_again friends? night?",
    "skill": "opening trait? wish try meet why_sad? cry_skill? tip practise success "
    "cheer_skill thanks? skill_end moral?",
    "share": "opening trait? carry meet hungry share full? trouble rescue repay thanks? "
    "moral? friends night?",
    "fear": "opening known_friend afraid fear_comes cry_fear comfort brave truth thanks? "
    "fear_end moral? night?",
    "build": "opening trait? known_friend plan build breaks give_up? again rebuild holds "
    "cheer_project? moral? friends",
    "creature": "opening trait? creature poor? fetch care watch? well goodbye return? moral? night",
    "gift": "opening known_friend birthday idea make? mishap ashamed loves thanks? party "
    "moral? friends?",
    "quarrel": "opening trait? known_friend own both_want mine pull silent? sorry sorry_too "
    "mended turns moral?",
    "plant": "opening trait? seed wait meet cry_seed patience water sprout? grown thanks? "
    "moral night?",
    "secret": "opening trait? known_friend clue wonder set_out on_way? go_on? treasure amazed? "
    "keep_secret friends? night?",
}
