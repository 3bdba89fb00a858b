"""The words of the story grammar: who, where and what a story may be about.

A story draws its facts from these tables once and keeps them to its end; the tables in `FREE`
are drawn anew in every sentence.
"""

from typing import Final, NamedTuple


class Item(NamedTuple):
    """A thing that somebody owns, with what is done with it and how it breaks and is mended."""

    noun: str
    use: str
    used: str
    broke: str
    mend: str


NAMES_HE: Final = (
    *("Tom", "Ben", "Max", "Sam", "Leo", "Finn", "Oscar", "Hugo"),
    *("Jack", "Felix", "Otto", "Theo", "Milo", "Toby", "Noah", "Rufus"),
)
NAMES_SHE: Final = (
    *("Lily", "Mia", "Anna", "Rosie", "Ella", "Ruby", "Daisy", "Clara"),
    *("Nora", "Ivy", "Molly", "Poppy", "Emma", "Hazel", "Wendy", "Tilda"),
)

ANIMALS: Final = (
    *("fox", "rabbit", "bear", "mouse", "hedgehog", "squirrel", "duck", "cat", "dog", "frog"),
    *("otter", "badger", "mole", "beaver", "deer", "goat", "pony", "lamb", "turtle", "owl"),
)

HOMES: Final = (
    *("cosy cottage", "little house", "wooden cabin", "round hut", "stone house"),
    *("tiny cottage", "tall tree house", "quiet farmhouse", "warm cabin", "yellow house"),
)
HOME_PLACES: Final = (
    *("by the river", "near the forest", "on a green hill", "beside the lake"),
    *("at the edge of the meadow", "in a quiet valley", "by the sea", "next to the old mill"),
    *("near the wooden bridge", "behind the orchard"),
)
# Where a story happens: the preposition that goes with the place, and the place.
PLACES: Final = (
    ("in", "the forest"),
    ("in", "the meadow"),
    ("in", "the garden"),
    ("in", "the park"),
    ("in", "the orchard"),
    ("on", "the hill"),
    ("by", "the river"),
    ("by", "the pond"),
    ("near", "the mill"),
    ("near", "the bridge"),
)

COLOURS: Final = (
    *("red", "blue", "yellow", "green", "purple", "orange"),
    *("white", "pink", "silver", "golden"),
)
ITEMS: Final = (
    Item("kite", "fly it in the wind", "flew it in the wind", "tore", "paper and glue"),
    Item("drum", "play it at parties", "played it at parties", "cracked", "a pot of glue"),
    Item("hat", "wear it on cold days", "wore it on cold days", "tore", "a needle and thread"),
    Item("scarf", "wear it in the snow", "wore it in the snow", "tore", "a needle and thread"),
    Item("lantern", "light it at night", "lit it at night", "cracked", "a piece of wire"),
    Item("toy boat", "sail it on the water", "sailed it on the water", "broke", "a pot of glue"),
    Item("book", "read it under a tree", "read it under a tree", "tore", "paper and glue"),
    Item("umbrella", "carry it in the rain", "carried it in the rain", "broke", "a piece of wire"),
    Item("flute", "play it at sunset", "played it at sunset", "cracked", "a silk ribbon"),
    Item("wagon", "pull it along the path", "pulled it along the path", "broke", "nails and wood"),
    Item("doll", "rock it to sleep", "rocked it to sleep", "broke", "a needle and thread"),
    Item(
        "blanket", "sit on it in the grass", "sat on it in the grass", "tore", "needle and thread"
    ),
)
SPOTS: Final = (
    *("under a pile of leaves", "behind a mossy log", "beneath a wooden bench", "in a bush"),
    *("inside a hollow tree", "between two big rocks", "among the tall grass", "under a bridge"),
    *("on a low branch", "next to an old well"),
)

# A skill: what it is, what it was, how the first try goes, the advice, how it is at last, where.
SKILLS: Final = (
    ("swim", "swam", "sank like a stone", "kick your legs slowly", "swam across the pond"),
    ("whistle", "whistled", "made no sound", "make a small round mouth", "whistled a merry tune"),
    ("juggle", "juggled", "dropped every ball", "watch only the balls", "juggled three balls"),
    ("ride a bicycle", "rode a bicycle", "fell over", "look far ahead", "rode all around the park"),
    ("dance", "danced", "tripped and fell", "listen to the music", "danced like a leaf"),
    ("paint", "painted", "spilled the paint", "use a small brush", "painted a rainbow"),
    ("sing", "sang", "sang the wrong notes", "take a deep breath", "sang like a bird"),
    ("climb trees", "climbed trees", "slid back down", "hold on tight", "climbed the oak tree"),
    ("bake bread", "baked bread", "burned the bread", "watch the oven", "baked a fine loaf"),
    ("row a boat", "rowed a boat", "went in circles", "pull with both arms", "rowed to the island"),
)
# Where each skill is tried, in the order of `SKILLS`.
SKILL_PLACES: Final = (
    ("at", "the pond"),
    ("in", "the garden"),
    ("in", "the park"),
    ("in", "the park"),
    ("in", "the barn"),
    ("in", "the garden"),
    ("in", "the orchard"),
    ("in", "the forest"),
    ("in", "the kitchen"),
    ("on", "the lake"),
)
# Animals that need no lesson in a skill.
BORN_TO: Final = {
    "swim": ("duck", "frog", "otter", "beaver", "turtle"),
    "climb trees": ("squirrel", "cat", "bear", "owl"),
    "sing": ("frog", "duck"),
}

# Food to carry: with its container, and alone.
FOODS: Final = (
    ("a basket of apples", "apples"),
    ("a jar of honey", "honey"),
    ("a bag of nuts", "nuts"),
    ("a loaf of bread", "bread"),
    ("a pot of soup", "soup"),
    ("a bowl of cherries", "cherries"),
    ("a plate of pancakes", "pancakes"),
    ("a box of biscuits", "biscuits"),
    ("a tray of cakes", "cakes"),
    ("a basket of pears", "pears"),
)
# What goes wrong for the hero, and how the friend puts it right.
TROUBLES: Final = (
    ("thick fog hid the path", "rang a bell and led {him} home"),
    ("{N} stepped into deep mud and got stuck", "pulled {him} out with a rope"),
    ("a storm began to shake the trees", "kept {him} dry inside a hollow tree"),
    ("{N} slipped into the cold stream", "held out a branch and pulled {him} out"),
    ("{N} took the wrong path and got lost", "showed {him} the way home"),
    ("{N} stepped on a sharp thorn", "took the thorn out very carefully"),
    ("a strong wind took {his} hat away", "caught the hat and brought it back"),
    ("{N} fell into a deep hole", "let down a ladder for {him}"),
)

# A fear: its name, its time of day, how it comes, the advice, and what was behind it.
FEARS: Final = (
    (
        "the dark",
        "night",
        "the lamp went out",
        "count the stars with me",
        "the night was full of stars",
    ),
    (
        "thunder",
        "afternoon",
        "thunder rolled over the hills",
        "clap your hands at every boom",
        "thunder was only a big drum in the sky",
    ),
    (
        "the high bridge",
        "evening",
        "the only way home went over the high bridge",
        "take one small step at a time",
        "the bridge was as strong as a mountain",
    ),
    (
        "the wind",
        "night",
        "the wind began to howl",
        "sing a song louder than the wind",
        "the wind was only singing too",
    ),
    (
        "shadows",
        "evening",
        "a tall shadow moved across the wall",
        "wave your hand at it",
        "the shadow was only a coat on a hook",
    ),
    (
        "the old cave",
        "morning",
        "a strange sound came out of the old cave",
        "walk close behind my lantern",
        "the sound was only water on the stones",
    ),
    (
        "school",
        "morning",
        "the school bell began to ring",
        "walk in beside me and smile",
        "the other children were just as shy",
    ),
    (
        "the deep lake",
        "afternoon",
        "the boat began to rock on the deep lake",
        "hold my hand and breathe slowly",
        "the lake rocked them like a cradle",
    ),
)

# A thing to build: what it is for, of what, how it fails, what makes it strong, how it ends.
PROJECTS: Final = (
    ("raft", "sail down the river", "old sticks", "a wave pulled it apart", "thick ropes"),
    ("tower", "look at the clouds", "flat stones", "the wind knocked it over", "wet clay"),
    ("bridge", "cross the stream", "thin branches", "the water washed it away", "heavy logs"),
    ("hut", "keep out of the rain", "dry straw", "the roof fell in", "strong planks"),
    ("swing", "fly up to the leaves", "an old rope", "the rope broke", "an iron chain"),
    ("sled", "slide down the hill", "a wooden box", "it hit a rock and broke", "long nails"),
    ("boat", "visit the island", "pine bark", "it filled with water and sank", "sticky tar"),
    ("tent", "sleep under the stars", "a bed sheet", "a strong wind blew it away", "iron pegs"),
)

# A small creature in need: its plight, the help it gets, and where it belongs.
CREATURES: Final = (
    ("baby bird", "had fallen out of its nest", "made a soft bed of moss", "its nest"),
    ("duckling", "had lost its mother", "wrapped it in a warm scarf", "the pond"),
    ("butterfly", "had a wet wing", "dried its wing in the sun", "the flowers"),
    ("beetle", "was lying on its back", "turned it over with a straw", "the old log"),
    ("kitten", "was stuck up in a tree", "brought a long ladder", "the farm"),
    ("bee", "had fallen into a puddle", "lifted it out with a spoon", "its hive"),
    ("fish", "was caught in a net", "cut the net with a sharp shell", "the deep water"),
    ("bat", "had hit a window", "let it rest in a dark box", "its cave"),
)

# A gift made by hand: of what it is made, and what goes wrong with it.
GIFTS: Final = (
    ("paper crown", "paper and paint", "the rain made its colours run"),
    ("shell necklace", "shells and string", "the string broke on the way"),
    ("wooden spoon", "a piece of oak", "the handle came out crooked"),
    ("flower wreath", "daisies and grass", "half of the daisies fell off"),
    ("wooden box", "a piece of pine", "the lid did not close"),
    ("woollen hat", "soft grey wool", "the hat was much too big"),
    ("clay cup", "clay from the river", "the cup leaned to one side"),
    ("paper bird", "thin white paper", "one wing was too short"),
)

# What is planted, and what it becomes.
PLANTS: Final = (
    ("sunflower", "a sunflower as tall as the roof"),
    ("pumpkin", "a pumpkin as big as a barn"),
    ("cherry tree", "a young cherry tree with pink flowers"),
    ("rose", "a rose that smelled of summer"),
    ("carrot", "a carrot as long as an arm"),
    ("tulip", "a tulip the colour of the sunset"),
    ("melon", "a melon as round as the moon"),
)

# A clue, what to do with it, and what lies at its end.
CLUES: Final = (
    ("an old map", "follow the map", "a chest full of {colour} buttons"),
    ("a letter in a bottle", "follow the letter", "a {colour} boat with two seats"),
    ("a row of {colour} feathers", "follow the feathers", "a splendid {colour} bird"),
    ("a row of tiny footprints", "follow the footprints", "a family of mice at their supper"),
    ("a strange {colour} key", "find the right door", "a secret garden full of roses"),
    ("a long {colour} thread", "follow the thread", "a weaver with a basket of wool"),
    ("a line of {colour} pebbles", "follow the pebbles", "a cave that sparkled like the stars"),
    ("a riddle on a piece of bark", "solve the riddle", "a hidden spring full of {colour} fish"),
)
CLUE_SPOTS: Final = (
    *("behind a mossy log", "beneath a wooden bench", "between two big rocks", "under a bridge"),
    *("among the tall grass", "next to an old well"),
)

# What a story teaches, by plot.
MORALS: Final[dict[str, tuple[str, ...]]] = {
    "skill": ("nobody is good at everything at first", "practice makes hard things easy"),
    "share": ("a kind deed always comes back", "sharing makes all food taste better"),
    "fear": ("most fears are smaller than they look", "being brave means trying anyway"),
    "build": ("it is fine to fail and try again", "strong things take time"),
    "creature": ("even the smallest friend matters", "a little help can mean a lot"),
    "gift": ("a gift from the heart is the best gift", "love is worth more than gold"),
    "quarrel": ("a friend is worth more than a toy", "saying sorry is never too late"),
    "plant": ("good things take time", "patience makes things grow"),
}

FREE: Final[dict[str, tuple[str, ...]]] = {
    "once": ("Once upon a time", "Long ago", "Once", "Not so long ago", "Many years ago"),
    "weather": (
        *("sunny", "windy", "cloudy", "misty", "warm", "cool", "bright", "quiet", "fresh"),
        *("grey", "mild", "fine"),
    ),
    "part": ("morning", "afternoon", "day"),
    "a_little": (
        *("a little", "a small", "a young", "a gentle", "a kind", "a clever", "a brave"),
        *("a shy", "a cheerful", "a curious", "a friendly", "a merry", "a lively", "a quiet"),
    ),
    "trait": (
        *("kind", "clever", "brave", "cheerful", "curious", "friendly", "merry", "gentle"),
        *("polite", "patient", "funny", "careful", "lively", "helpful"),
    ),
    "family": ("mother", "father", "grandmother", "grandfather", "aunt", "uncle"),
    "hobby": (
        *("sing old songs", "look at the clouds", "pick berries", "climb trees"),
        *("tell funny stories", "count the stars", "splash in puddles", "draw pictures"),
        *("dance in the rain", "collect smooth stones", "listen to the birds", "run races"),
        *("roll down hills", "sleep in the sun"),
    ),
    "went": ("walked", "ran", "hurried", "skipped", "wandered", "went"),
    "how": (
        *("with a smile", "in a soft voice", "in a gentle voice", "with a friendly nod"),
        *("with a kind look", "with a kind smile", "in a calm voice", "in a warm voice"),
    ),
    "softly": (
        *("in a soft voice", "in a gentle voice", "with a kind look", "in a calm voice"),
        *("in a low voice", "in a warm voice", "softly", "gently", "quietly", "kindly"),
    ),
    "nice": ("lovely", "dear", "pretty", "beautiful", "fine"),
    "sadly": (
        *("in a small voice", "in a sad voice", "with a long sigh", "with a heavy heart"),
        *("with tears in {his} eyes", "and looked at the ground", "and sat down on a stone"),
        *("and shook {his} head",),
    ),
    "mhow": ("in a weak voice", "with a sigh", "in a low voice", "and rubbed {mhis} eyes"),
    "gladly_n": ("with shining eyes", "with a big smile", "in a joyful voice", "with delight"),
    "gladly": (
        *("with shining eyes", "with a big smile", "in a joyful voice", "and jumped for joy"),
        *("and danced in a circle", "and hugged {M}", "and laughed out loud", "with delight"),
    ),
    "long": (
        *("for a long time", "for an hour", "all day", "until noon", "until the sun went down"),
        *("until dinner time", "all morning", "all afternoon"),
    ),
    "soon": (
        *("Soon", "At last", "After a while", "A little later", "Just before sunset"),
        *("In the end", "Before long", "After a long time"),
    ),
    "then": (
        "Then",
        "But then",
        "All at once",
        "Suddenly",
        "But soon",
        "Just then",
        "A moment later",
    ),
    "saw_sad": ("felt sad", "felt very small", "wanted to cry", "felt lonely", "was very worried"),
    "glad": ("glad", "happy", "proud", "cheerful", "pleased", "joyful", "thankful", "merry"),
    "very": ("very", "so", "really", "truly"),
    "dear": ("my friend", "{N}", "dear {N}", "little {kind}", "my dear", "dear friend"),
    "mdear": ("my friend", "{M}", "dear {M}", "my good friend", "my dear", "dear friend"),
    "said": ("said", "answered", "replied", "whispered"),
    "cried": ("cried", "shouted", "called", "laughed", "cheered"),
    "angrily": ("angrily", "in a loud voice", "in an angry voice", "with a red face"),
    "hard": ("hard", "harder and harder", "with both hands", "again and again"),
    "adv": (
        *("slowly", "quickly", "quietly", "carefully", "gently", "bravely", "gladly", "softly"),
        *("patiently", "calmly", "happily", "proudly"),
    ),
    "food": (
        *("warm soup", "hot tea", "apple pie", "fresh bread", "honey cake", "sweet berries"),
        *("cold milk", "pancakes", "hot cocoa", "plum jam"),
    ),
    "nature": (*("birds", "frogs", "bees", "leaves", "flowers", "clouds", "trees", "stars"),),
}
