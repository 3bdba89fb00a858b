"""Sentences of plots in which the hero is in need and a friend helps."""

from typing import Final

BEATS: Final[dict[str, tuple[str, ...]]] = {
    # A lost thing.
    "lost": (
        "One <weather> <part>, {N} <went> {to_place} and [saw|noticed] that the {item} was "
        "[gone|missing|lost].",
        "One <weather> <part>, {N} wanted to {use}, but the {item} was [gone|missing|not in "
        "its place].",
        "But one <weather> <part>, {he} lost the {item} [somewhere |]{at_place}.",
    ),
    "oh_lost": (
        '"[Oh no|Oh dear|Dear me], where is my [<nice> |]{item}?" [asked|cried|sobbed] {N} '
        "<sadly>.",
    ),
    "cry_lost": (
        '"I have lost my [<nice> |]{item}[, and I cannot find it|, and now it is gone| '
        'somewhere|]," [sobbed|said|cried] {N} <sadly>.',
    ),
    "search": (
        "{He} looked [under|behind] the [bushes|stones|leaves|old tree] and [in|near] the "
        "[grass|bushes|barn|hollow log], but the {noun} was not there.",
        "{N} looked for the {noun} [<adv> |]<long>, but {he} could not find it [at all|"
        "{at_place}].",
        "{N} asked the <nature> and [then |]the <nature>, but nobody had seen the {noun}.",
    ),
    "offer_search": (
        '"Do not [worry|cry|be sad], <dear>, [we will find it|I will help you look|we can '
        'look for it]," <said> {M} <how>.',
        '"[Four eyes see more than two|Let us look together|Two can look better than one], '
        '<dear>," <said> {M} <how>.',
    ),
    "found": (
        "<soon>, {M} [saw|found|noticed] the {item} {spot}[, safe and dry|, a little wet|].",
        "<soon>, they found the {item} {spot}, where [the wind|a <weather> wind|a storm|a "
        "<trait> magpie] had [left|dropped|carried] it.",
        "They looked {at_place} <long>, and <soon_low> [{M}|they] found the {noun} {spot}.",
    ),
    "cheer_found": (
        '"[Look|Hurrah|Hooray|See], [my|here is my] {noun} [{spot}|was {spot}]!" <cried> {N} '
        "<gladly>.",
        '"[You found my {noun}|My {noun} is back|I have my {noun} again], <mdear>!" <cried> '
        "{N} <gladly>.",
    ),
    "use_again": (
        "{N} {used} again, and [this time|then] {he} let {M} [try it too|have a turn|join in].",
        "From then on, {N} [took good care of|never lost|always looked after] the {item}, "
        "[even |]on <weather> days.",
        "To thank {M}, {N} [gave {mhim}|made {mhim}|shared] [some |]<food>, and they [talked|"
        "laughed] <long>.",
    ),
    # A skill to learn.
    "wish": (
        "More than anything, {N} wanted to {skill} like {his} [<trait> |]<family>.",
        "{N} had one [big|great|secret|small] wish[, and it was to|: {he} wanted to learn to] "
        "{skill} [well|like {his} <family>|like the others].",
        "One <weather> <part>, {N} saw {his} <family> {skill} and wanted to do the same.",
    ),
    "try": (
        "One <weather> <part>, {N} <went> {to_place} to {skill}, but {he} {fail}.",
        "{He} tried <long> {at_place}, but [each time|every time|again and again] {he} {fail}.",
        "{N} tried to {skill} {at_place}, but {he} {fail} and <saw_sad>.",
    ),
    "cry_skill": (
        '"I will never [learn to |]{skill}[, <mdear>|]," [sighed|said|sobbed] {N} <sadly>.',
        '"[Oh no|Oh dear|Dear me], [why can I not {skill}|why is it so hard to {skill}]?" '
        "asked {N} <sadly>.",
    ),
    "tip": (
        '"[You must|Try to|First you must|You only have to] {tip}, <dear>," <said> {M} <how>.',
        '"If you want to {skill}, <dear>, you must {tip}," <said> {M} <how>.',
    ),
    "practise": (
        "{N} listened to {M} and tried [again|once more|again and again] <long>.",
        "They practised together {at_place} <long>, and {M} [cheered|helped|clapped|sang] "
        "[for {him}|every time|with a smile|<adv>].",
        "The next [day|morning], and the [day|morning] after, {N} practised [<adv> |]<long>.",
    ),
    "success": (
        "<soon>, one <weather> <part>, {N} {success}[ for the first time| without any help|].",
        "<then>, {N} {success}, and {M} [clapped {mhis} hands|cheered|jumped for joy|laughed] "
        "[<adv>|with joy].",
    ),
    "cheer_skill": (
        '"[Look|Hurrah|Hooray|See], <mdear>, I can {skill}!" <cried> {N} <gladly>.',
        '"I knew [that |]you could {skill}, <dear>," [said|whispered|called] {M} <how>.',
    ),
    "skill_end": (
        "From that day on, {N} {skilled} {at_place} [every <weather> <part>|with {M} on "
        "<weather> days].",
        "Now {N} and {M} {skill} together {at_place} [every <weather> <part>|on <weather> days].",
        "{N} never gave up after that, and {he} {skilled} every <weather> <part>.",
        "From then on, {N} and {M} {skilled} together, <adv> and <adv>, {at_place}.",
    ),
    # A fear.
    "afraid": (
        "{N} was <trait> and <trait>, but {he} was afraid of {fear}.",
        "There was [only |just |]one thing [in the world |in {his} life |]that {N} [did not "
        "like|was afraid of|worried about], and that was {fear}.",
        "But [every|each] <weather> <part>, {N} [worried|thought] about {fear}[ and <saw_sad>|].",
    ),
    "fear_comes": (
        "One [long|grey|cold|quiet|strange|<weather>] {time}, {sign}, and {N} [began to shake|"
        "<saw_sad>|closed {his} eyes|hid {his} face|held on to {M}].",
        "Then one [long|grey|cold|quiet|strange|<weather>] {time}, when {N} was [out |]with "
        "{M}, {sign}[, and {he} <saw_sad>|].",
    ),
    "cry_fear": (
        '"I am <very> afraid of {fear}[, <mdear>|]," [whispered|said|cried|sobbed] {N} <sadly>.',
        '"[Help|Please help me|Stay with me|Do not go], <mdear>, I am afraid of {fear}!" '
        "[cried|whispered] {N} <sadly>.",
    ),
    "comfort": (
        '"[Just|You only have to|Come and|Stay with me and] {advice}, <dear>," <said> {M} <how>.',
        '"[Do not worry|Be brave|Do not be afraid|Trust me] and {advice}, <dear>," <said> {M} '
        "<how>.",
    ),
    "brave": (
        "{N} [took a deep breath|closed {his} eyes|counted to three|held on to {M}] and tried "
        "it [<adv>|<adv>, very <adv>|once and then again].",
        "{N} did what {M} said, first <adv> and then [more |]<adv>.",
        "[<Adv>, <adv>|<Adv>], {N} did what {M} said, and {he} felt a little [better|<glad>].",
    ),
    "truth": (
        "<soon>, {N} [saw|noticed|found out|understood] that {truth}[ and laughed|, and {he} "
        "was <glad>|].",
        "<then>, {N} [laughed|smiled|looked up|was calm][ <adv>|], because {truth}.",
    ),
    "fear_end": (
        "After that, {N} was [no longer|not|never again] afraid of {fear}, and {he} felt "
        "<glad> and <glad>.",
        "The next time that {sign}, {N} [smiled|laughed|was calm|stayed calm] [and thought of "
        "{M}|and felt <glad>|and was brave].",
        "Now, on <weather> days, {N} and {M} [laughed|talked|sang] about {fear}[ <adv>| "
        "together|].",
    ),
    # A small creature in need.
    "creature": (
        "One <weather> <part>, {N} <went> {to_place} and [found|saw|met] a {creature} that "
        "{plight}.",
        "One <weather> <part>, {N} heard a [small|soft|sad|tiny] [cry|sound|voice] "
        "{at_place}: a {creature} {plight}.",
    ),
    "poor": (
        '"[Poor|Poor little|You poor|Dear little] {creature}, [I will|let me|I want to] help '
        'you," [whispered|said] {N} <how>.',
        '"Do not [worry|cry|be afraid], little {creature}, [I will|we will|I can] help you," '
        "[whispered|said] {N} <how>.",
    ),
    "fetch": (
        "{N} <went> [<adv> |]to {his} friend {M}, <a_little> {mkind}, and told {mhim} about "
        "the {creature}.",
        "{He} [called|asked|fetched] {his} friend {M}, <a_little> {mkind}, to help the {creature}.",
    ),
    "care": (
        "{M} knew what to do, and [<adv> |]{N} and {M} {care}[ {at_place}| together|].",
        "Together, <adv> and <adv>, they {care}.",
        "[<Adv> and <adv>|<Adv>], {N} and {M} {care}.",
        "{N} was <very> worried, but {M} [stayed calm|knew what to do|was not], and <adv> "
        "they {care}.",
    ),
    "watch": (
        "They [stayed with|looked after|sang to|watched] the {creature} <long>, and [{M}|{N}] "
        "gave it [some |a little ][water|food].",
        "The {creature} [slept|rested|was quiet] <long>, and {N} [waited|watched|sat] beside "
        "it [<adv>|with {M}].",
    ),
    "well": (
        "<soon>, the {creature} was [well|strong|happy] again, and they took it back to {belongs}.",
        "<soon>, one <weather> <part>, the {creature} [could go|went] [home|back] to {belongs}.",
    ),
    "goodbye": (
        '"[Goodbye|Take care|Be careful|Be happy], little {creature}[, and come back soon|, '
        'we will miss you|]!" <cried> {N} <gladly>.',
        "{N} and {M} [waved|called goodbye|smiled] <adv>, and the {creature} [turned around "
        "once|looked back|seemed to smile].",
    ),
    "return": (
        "Every <weather> <part> after that, the {creature} [came to visit|came to see] {N} "
        "{at_place}[, <glad> and well|].",
        "The next <weather> <part>, the {creature} was waiting [at|in front of|near] the "
        "{home}, <glad> [and well|and <glad>].",
    ),
    # A plant.
    "seed": (
        "One <weather> <part>, {his} <family> gave {N} a {plant} seed to plant [by|behind|"
        "near] the {home}.",
        "One <weather> <part>, {N} found a [small|tiny|round] {plant} seed {at_place} and "
        "planted it [by|behind|in front of|near] the {home}.",
    ),
    "wait": (
        "{He} [watched|looked at|sat beside] the [earth|ground|soil] <long>, but no {plant} "
        "came [up|out].",
        "Every <weather> <part>, {N} looked for the {plant}, but [nothing grew|there was only "
        "earth|nothing came up].",
    ),
    "cry_seed": (
        '"[Why will my {plant} not grow|When will my {plant} grow|Why does my {plant} take so '
        'long][, <mdear>|]?" asked {N} <sadly>.',
        '"My {plant} [will never grow|must be asleep|does not like me][, <mdear>|]," [sighed|'
        "said|sobbed] {N} <sadly>.",
    ),
    "patience": (
        '"[A|Every] {plant} needs [water and sun|water and time|sun and time|time and love], '
        '<dear>," <said> {M} <how>.',
        '"[Wait a little|Be patient|Give it time|Water it <adv>], <dear>, and the {plant} '
        'will [grow|come]," <said> {M} <how>.',
    ),
    "water": (
        "So {N} and {M} watered the {plant} [<adv> |]every <weather> <part>.",
        "{N} [carried|brought] water to the {plant} every <part>, and {M} [sang to|talked to|"
        "looked after] it <adv>.",
    ),
    "sprout": (
        "<then>, one <weather> <part>, a [tiny|small|thin] green [leaf|shoot] [came up|came "
        "out|looked out of the earth].",
        '"[Look|Hurrah|Hooray|See], <mdear>, my {plant} is [growing|here]!" <cried> {N} <gladly>.',
    ),
    "grown": (
        "<soon>, it was {grown}, and {N} [showed it to|was proud and thanked] [{M}|{his} "
        "<family>].",
        "By the end of [summer|the <weather> summer|August|autumn], it had become {grown}, "
        "[and {M} was <glad>|and everyone was <glad>|<glad> to be in the sun].",
    ),
}
