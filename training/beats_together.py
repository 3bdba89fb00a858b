"""Sentences of plots that the hero and the friend live through together."""

from typing import Final

BEATS: Final[dict[str, tuple[str, ...]]] = {
    # Food that is shared.
    "carry": (
        "One <weather> <part>, {N} <went> {to_place} with {food} for {his} <family>.",
        "One <weather> <part>, {his} <family> gave {N} {food}, and {he} <went> {to_place}.",
    ),
    "hungry": (
        '"I have not eaten [anything |]since [morning|noon|last night], and [I am|now I feel] '
        '<very> [hungry|weak|tired]," [said|sighed] {M} <mhow>.',
        '"A [storm|thief|strong wind] took all my [food|bread|fruit|supper], and I am <very> '
        'hungry," [said|sighed] {M} <mhow>.',
    ),
    "share": (
        '"Please [take|eat|have|try] some of my {short}, <mdear>," said {N} <how>.',
        "{N} [gave {M}|shared with {M}|offered {M}] half of the {short}, and they [ate|talked|"
        "sat] {at_place} <long>.",
    ),
    "full": (
        "{M} ate the {short} <adv> and felt <glad> and <glad> again.",
        '"Your {short} made me [<very> |]<glad>[ and <glad>|], <dear>," [said|whispered] {M} '
        "<how>.",
    ),
    "trouble": (
        "On the way home, {trouble}, and {he} <saw_sad>[ and called for help| and <saw_sad>|].",
        "[Later that day|A little later|Soon after that], {trouble}, and {he} [called|shouted|"
        "cried] [<adv> |]for [help|{his} <family>].",
    ),
    "rescue": (
        "<then>, {M} came [running|back|along|to help] and [<adv> |]{rescue}.",
        "But {M} [heard|saw] {him} [from far away|through the trees|<adv>|from the path] and "
        "[<adv> |]{rescue}.",
    ),
    "repay": (
        '"You shared your {short} with me, <dear>, [so|and] now I [want to|can] help you," '
        "[said|whispered] {M} <how>.",
        '"I will [never|not] forget your {short}, <dear>," [said|whispered|laughed] {M} <how>.',
    ),
    # Something built.
    "plan": (
        "One <weather> <part>, {N} and {M} wanted to build a {project} [{at_place} |]to {purpose}.",
        '"Let us build a {project} [{at_place} |]to {purpose}, <mdear>," said {N} one '
        "<weather> <part>.",
    ),
    "build": (
        "They [found|chose|gathered] {stuff} {at_place} and worked [<adv> |]<long>.",
        "{N} and {M} made it of {stuff}, and they worked [<adv> |]<long>.",
    ),
    "breaks": (
        "<then>, [one <weather> <part>, |]{disaster}[, and the {project} was gone|], and {N} "
        "<saw_sad>[ and <saw_sad>|].",
        "The {project} looked [fine|good|strong], but [the next <part>|the next day|soon|"
        "after a <weather> <part>] {disaster}.",
    ),
    "give_up": (
        '"Our {project} is [gone|lost|broken|no good], [and I give up|and I am <very> sad|and '
        'all our work is lost]," [sighed|said|sobbed] {N} <sadly>.',
        '"[We will never|We cannot|How can we] [build|make] a {project}[, <mdear>|]," [sighed|'
        "said|sobbed] {N} <sadly>.",
    ),
    "again": (
        '"[We can|Let us|We will|We must] try again with {strong}, <dear>," <said> {M} <how>.',
        '"[This time|Tomorrow|Next time] we will use {strong}, <dear>," <said> {M} <how>.',
    ),
    "rebuild": (
        "So they [built|made] a [new|better|second] {project} with {strong}, and they worked "
        "[<adv> |]<long>.",
        "{N} [brought|found|carried] {strong}, and [<adv> |]they built the {project} again "
        "[{at_place}|<long>].",
    ),
    "holds": (
        "<soon>, the {project} was [ready|done|finished], and it was [strong|big] enough to "
        "{purpose}.",
        "The [new|second] {project} was [strong|fine|firm], and <soon_low> {N} and {M} used "
        "it to {purpose}.",
        "One <weather> <part>, the {project} was [ready|done|finished], and {N} and {M} used "
        "it to {purpose}[ <long>|].",
        "This time, the {project} [held|was strong|was firm], and {N} and {M} were <glad> and "
        "<glad>.",
    ),
    "cheer_project": (
        '"[Look|Hurrah|Hooray|See], <mdear>, our {project} [is strong|is the best]!" <cried> '
        "{N} <gladly>.",
        '"[What a|We have a|This is a] [fine|strong|lovely|splendid] {project}, <dear>," '
        "[said|called] {M} <how>.",
    ),
    # A gift.
    "birthday": (
        "One <weather> <part>, it was the birthday of {M}, but {N} had no [gift|surprise] for "
        "{mhim}[ at all| yet|].",
        "The birthday of {M} was near, and {N} wanted to give {mhim} something [very |really |"
        "]special, but {he} had no [money|gift|idea].",
        '"Today is my birthday, <dear>," [said|whispered|called] {M} one <weather> <part>.',
    ),
    "idea": (
        '"I will make {M} a {gift} [myself|with my own hands|all by myself|today]," [said|'
        "whispered] {N} <gladly_n>.",
        '"A {gift} would make {M} <very> <glad>," [said|whispered] {N} <gladly_n>.',
        "{N} <went> [<adv> |]{to_place}, [found|looked for|thought of] {material}, and began "
        "to make a {gift}.",
    ),
    "make": (
        "{He} worked <long>, <adv> and <adv>, with {material}.",
        "{N} [took|used|chose] {material} and worked [<adv> |]<long>.",
    ),
    "mishap": (
        "But {mishap}, and {N} <saw_sad>[ and <saw_sad>| about the {gift}|].",
        "<then>, {mishap}, and {N} [<adv> |]hid the {gift} behind {his} back[ and <saw_sad>|].",
    ),
    "ashamed": (
        '"[Oh no|Oh dear|Dear me], my {gift} is [not good enough|no good|ugly|spoiled]," '
        "[sighed|said|sobbed] {N} <sadly>.",
        '"I am sorry, <mdear>, [my|this|the] {gift} is not [perfect|pretty|fine enough]," '
        "[sighed|said|whispered] {N} <sadly>.",
    ),
    "loves": (
        '"You made [it|this {gift}|this] [yourself|just for me], <dear>, and [I love it|it is '
        'lovely|that is the best part]," <said> {M} <how>.',
        '"This is the [best|finest|dearest] {gift} [in the world|of all|I ever had], <dear>," '
        "<said> {M} <how>.",
    ),
    "party": (
        "They [ate|shared] <food> and <food> {at_place} and [laughed|sang|danced|played] <long>.",
        "{M} kept the {gift} [next to {mhis} bed|on a shelf|close to {mhis} heart|in a "
        "special box], and [<adv> |]{mhe} showed it to {mhis} <family>.",
    ),
    # A quarrel.
    "both_want": (
        "One <weather> <part>, both {N} and {M} wanted to {use}.",
        "One <weather> <part>, {N} <went> {to_place} with the {item}, and {M} wanted to "
        "[{use}|have it] too.",
    ),
    "mine": (
        '"[It is my turn|The {noun} is mine|I had it first|Give me the {noun}|Let go of the '
        '{noun}], <mdear>!" [shouted|cried|called] {N} <angrily>.',
        '"[No, it is mine|You always have it|You never share|That is not fair], <dear>!" '
        "[shouted|cried|called] {M} <angrily>.",
    ),
    "pull": (
        "{N} pulled <hard>, [and {M} pulled too, |{M} pulled <hard>, |]and the {item} "
        "{broke}[ with a loud noise| in the middle|].",
        "They pulled <hard> [and shouted |]until the {item} {broke} [in two|with a loud noise|"
        "in the middle].",
        "<then>, [while they pulled <hard>|because they both pulled], the {item} {broke}[ "
        "with a loud noise| in the middle|].",
    ),
    "silent": (
        "{N} and {M} [were quiet|said nothing|stayed apart] <long>, and {N} <saw_sad>.",
        "{M} <went> home, and {N} sat {at_place} <long> and <saw_sad>.",
    ),
    "sorry": (
        '"I am [<very> |]sorry that the {noun} {broke}, <mdear>," said {N} <sadly>.',
        '"I am [<very> |]sorry[ that I pulled| that I shouted|], <mdear>[, and I miss you|]," '
        "said {N} <sadly>.",
    ),
    "sorry_too": (
        '"I am sorry too, <dear>, [and|so] [we can|let us] mend it [together|with {mend}]," '
        "<said> {M} <how>.",
        '"[We can|Let us|We will] mend the {noun} with {mend}, <dear>," <said> {M} <how>.',
    ),
    "mended": (
        "They [found|took|fetched] {mend} and mended the {item} [<adv>|<long>|<adv> together].",
        "With {mend}, they worked [<adv> |]<long>, and <soon_low> the {noun} was [whole|as "
        "good as new|mended] again.",
    ),
    "turns": (
        "After that, [first |]{N} {used}, and then {M} [{used} too|had a turn], and both were "
        "<glad>[ and <glad>|].",
        "From then on, they took turns [<adv> |]with the {item}[ {at_place}|], and both were "
        "<glad>.",
    ),
    # Something secret.
    "clue": (
        "One <weather> <part>, {N} and {M} found {clue} {spot}.",
        "One <weather> <part>, {M} [ran|came|hurried] to the {home} and [showed {N}|told {N} "
        "about] {clue} {spot}.",
        "One <weather> <part>, {N} and {M} <went> {to_place} and [saw|found] {clue} {spot}.",
    ),
    "wonder": (
        '"[I wonder|Who knows|Tell me] what [this is|this means|it can be], <mdear>," said '
        "{N} <how>.",
        '"[Let us|We should|We must] {follow} [today|now|at once|together], <dear>," [said|'
        "whispered|called] {M} <how>.",
    ),
    "set_out": (
        "So they took [some|a little] <food> and <went> {to_place} to {follow}.",
        "They <went> <adv> {to_place}, and {N} [held|took] {M} by the hand.",
    ),
    "on_way": (
        "They <went> past the [trees|rocks|flowers] and the [bushes|stones|barn], and {M} was "
        "[a little |very |][tired|hungry|afraid|curious].",
        "The way was [long|dark], and {N} <saw_sad>, but {M} [sang a song|told a story|held "
        "{his} hand] [<adv>|<how>].",
    ),
    "go_on": (
        '"[We are almost there|Do not give up|It cannot be far], <dear>," [said|called|'
        "whispered] {M} <how>.",
        '"I am not [tired|afraid|hungry] when you are with me, <mdear>," [said|whispered] {N} '
        "<how>.",
    ),
    "treasure": (
        "<soon>, [{at_place} |]they found {treasure}[, and both were <glad>|, and {N} was "
        "<glad>|].",
        "<soon>, [{at_place} |]{N} [opened {his} eyes wide|stopped|called out] and saw {treasure}.",
    ),
    "amazed": (
        '"[How|This is so|It is so|That is so] [lovely|beautiful|splendid], <mdear>!" <cried> '
        "{N} <gladly>.",
        '"[What a|This is a|It is a] [surprise|wonder|treasure], <dear>!" <cried> {M} <how>.',
    ),
    "keep_secret": (
        "They [stayed|sat|played|talked] there <long>, and then they <went> home [<adv>|to "
        "the {home}].",
        "{N} and {M} [promised|agreed|decided] to [come back|return] [on the next <weather> "
        "<part>|every <weather> <part>].",
        "{N} and {M} [promised|agreed|decided] to keep it secret, and they <went> [<adv> |"
        "]back to the {home}.",
    ),
}
