"""Skills on letters, words and sentences: editing, sorting, counting, forms, meanings."""

from collections.abc import Mapping
from random import Random

from podium_core.grading.items import Make, Task, choice, listing, number, text
from podium_core.grading.skills.vocabulary import NAMES, WORDS

_VOWELS = "aeiou"
_PLURALS: Mapping[str, str] = {
    "child": "children", "mouse": "mice", "goose": "geese", "tooth": "teeth", "foot": "feet", "man": "men",
    "woman": "women", "ox": "oxen", "leaf": "leaves", "knife": "knives", "wolf": "wolves", "half": "halves",
    "city": "cities", "baby": "babies", "box": "boxes", "church": "churches", "dish": "dishes", "hero": "heroes",
    "potato": "potatoes", "shelf": "shelves", "loaf": "loaves", "thief": "thieves", "crisis": "crises",
    "louse": "lice", "person": "people", "sheep": "sheep", "deer": "deer", "story": "stories", "glass": "glasses",
    "match": "matches", "tomato": "tomatoes", "wife": "wives", "life": "lives", "calf": "calves", "bus": "buses",
}  # fmt: skip
_PASTS: Mapping[str, str] = {
    "go": "went", "eat": "ate", "see": "saw", "buy": "bought", "bring": "brought", "teach": "taught",
    "catch": "caught", "think": "thought", "write": "wrote", "ride": "rode", "drive": "drove", "fly": "flew",
    "grow": "grew", "know": "knew", "throw": "threw", "swim": "swam", "sing": "sang", "begin": "began",
    "drink": "drank", "break": "broke", "speak": "spoke", "choose": "chose", "freeze": "froze", "steal": "stole",
    "take": "took", "shake": "shook", "give": "gave", "fall": "fell", "hold": "held", "build": "built",
    "lend": "lent", "keep": "kept", "sleep": "slept", "find": "found", "fight": "fought", "seek": "sought",
}  # fmt: skip
_OPPOSITES: Mapping[str, str] = {
    "hot": "cold", "early": "late", "full": "empty", "heavy": "light", "brave": "timid", "ancient": "modern",
    "rough": "smooth", "wide": "narrow", "generous": "stingy", "public": "private", "victory": "defeat",
    "arrive": "depart", "expand": "shrink", "hidden": "visible", "guilty": "innocent", "shallow": "deep",
    "rare": "common", "gather": "scatter", "loud": "quiet", "sharp": "blunt", "noisy": "silent", "rich": "poor",
    "attack": "defend", "accept": "refuse", "borrow": "lend", "ascend": "descend",
}  # fmt: skip
_KINDS: Mapping[str, tuple[str, ...]] = {
    "fruit": ("apple", "pear", "plum", "cherry", "mango", "banana", "grape", "apricot"),
    "tools": ("hammer", "saw", "chisel", "wrench", "drill", "pliers", "screwdriver", "axe"),
    "birds": ("sparrow", "eagle", "owl", "penguin", "swan", "robin", "crow", "falcon"),
    "instruments": ("violin", "trumpet", "flute", "drum", "harp", "cello", "oboe", "piano"),
    "metals": ("iron", "copper", "silver", "zinc", "tin", "gold", "lead", "nickel"),
    "clothes": ("shirt", "coat", "glove", "scarf", "sock", "hat", "skirt", "belt"),
    "vehicles": ("bus", "train", "bicycle", "lorry", "tram", "ferry", "scooter", "van"),
}


def _letter_count(random: Random, level: int) -> Task:
    words = random.sample(WORDS, 3 * level - 2)
    phrase = " ".join(words)
    letter = random.choice([c for c in phrase if c.isalpha()])
    count = phrase.count(letter)
    return number(
        f"How many times does the letter {letter} occur in: {phrase}", count, count + 2, len(phrase)
    )


def _vowels(random: Random, level: int) -> Task:
    phrase = " ".join(random.sample(WORDS, 2 * level))
    count = sum(c in _VOWELS for c in phrase)
    return number(
        f"How many vowels (a, e, i, o, u) are there in: {phrase}", count, count - 1, len(phrase) - count
    )


def _reverse(random: Random, level: int) -> Task:
    phrase = " ".join(random.sample(WORDS, level))
    return text(
        f"Write backwards, letter by letter, spaces too: {phrase}",
        phrase[::-1],
        phrase,
        phrase[::-1].swapcase()[1:],
    )


def _word_order(random: Random, level: int) -> Task:
    words = random.sample(WORDS, 2 + 2 * level)
    asked = f"Write these words in the opposite order, separated by spaces: {' '.join(words)}"
    return text(asked, " ".join(reversed(words)), " ".join(words), " ".join(reversed(words[1:])))


def _replacement(random: Random, level: int) -> Task:
    word = "".join(random.sample(WORDS, level))
    old = random.choice(word)
    new = random.choice("qxzkw".replace(old, ""))
    gold = word.replace(old, new)
    if level == 1:
        return text(f"Replace every {old} by {new} in: {word}", gold, word, word.replace(old, new, 1) + new)
    dropped = gold.replace(word[0] if word[0] != old else new, "")
    asked = f"In {word}, replace every {old} by {new}; then remove every {word[0] if word[0] != old else new}. What is left?"
    return text(asked, dropped, gold, word)


def _without_vowels(random: Random, level: int) -> Task:
    phrase = " ".join(random.sample(WORDS, level + 1))
    gold = "".join(c for c in phrase if c not in _VOWELS)
    return text(
        f"Remove the letters a, e, i, o, u and keep the spaces: {phrase}", gold, phrase, gold.replace(" ", "")
    )


def _letter_at(random: Random, level: int) -> Task:
    phrase = "".join(random.sample(WORDS, level))
    place = random.randint(2, len(phrase) - 1)
    near = phrase[place - 2], phrase[place]
    return text(f"What is letter number {place} of {phrase}, counting from 1?", phrase[place - 1], *near)


def _caesar(random: Random, level: int) -> Task:
    word, shift = random.choice(WORDS), random.randint(1, 4 * level)
    moved = _shifted(word, shift)
    if random.randrange(2):
        return text(
            f"Move every letter {shift} places forward in the alphabet (after z comes a): {word}",
            moved,
            _shifted(word, shift + 1),
            word,
        )
    asked = f"Every letter of a word was moved {shift} places forward in the alphabet; the result is {moved}. What was the word?"
    return text(asked, word, _shifted(moved, shift), moved)


def _shifted(word: str, shift: int) -> str:
    return "".join(chr((ord(c) - ord("a") + shift) % 26 + ord("a")) for c in word)


def _acronym(random: Random, level: int) -> Task:
    words = random.sample(WORDS, 3 + 2 * level)
    place = level - 1
    which = ("first", "second", "third")[place]
    gold = "".join(w[place] for w in words)
    asked = f"Join the {which} letters of these words into one: {' '.join(words)}"
    return text(asked, gold, gold[::-1] + "q", "".join(w[place + 1] for w in words))


def _run_length(random: Random, level: int) -> Task:
    letters: list[str] = []
    for _ in range(2 + 2 * level):
        letters.append(random.choice([c for c in "abcde" if c not in letters[-1:]]))
    counts = [random.randint(1, 3 + level) for _ in letters]
    long = "".join(c * n for c, n in zip(letters, counts, strict=True))
    short = "".join(f"{c}{n}" for c, n in zip(letters, counts, strict=True))
    if random.randrange(2):
        return text(f"In short form aaab is a3b1. Write in short form: {long}", short, short[:-1] + "9", long)
    return text(f"In short form aaab is a3b1. Write in long form: {short}", long, long + long[-1], long[1:])


def _title_case(random: Random, level: int) -> Task:
    words = random.sample(WORDS, 2 + level)
    joiner = random.choice(("_", "-", "."))
    kinds = {
        "camelCase (like twoWords)": words[0] + "".join(w.capitalize() for w in words[1:]),
        "PascalCase (like TwoWords)": "".join(w.capitalize() for w in words),
        "UPPER_CASE (like TWO_WORDS)": "_".join(words).upper(),
    }
    name = random.choice(list(kinds))
    near = [value for value in kinds.values() if value != kinds[name]]
    return text(f"Rewrite {joiner.join(words)} in {name}.", kinds[name], *near, fold_case=False)


def _sort_words(random: Random, level: int) -> Task:
    words = random.sample(WORDS, 3 + 3 * level)
    is_falling = bool(random.randrange(2))
    order = "from z to a" if is_falling else "from a to z"
    asked = f"Sort {order}, separated by commas: {', '.join(words)}"
    return listing(asked, sorted(words, reverse=is_falling), ordered=True)


def _sort_numbers(random: Random, level: int) -> Task:
    values = random.sample(range(-50 * level if level > 1 else 1, 200 * level), 4 + 3 * level)
    is_falling = bool(random.randrange(2))
    order = "largest first" if is_falling else "smallest first"
    asked = f"Sort, {order}, separated by commas: {', '.join(map(str, values))}"
    return listing(asked, [str(v) for v in sorted(values, reverse=is_falling)], ordered=True)


def _longest(random: Random, level: int) -> Task:
    words = random.sample(WORDS, 4 + 3 * level)
    size = random.choice([len(w) for w in words])
    gold = [w for w in words if len(w) == size]
    return listing(f"Which of these words have exactly {size} letters? {', '.join(words)}", gold)


def _anagram(random: Random, level: int) -> Task:
    word = random.choice([w for w in WORDS if len(w) == 5 + min(level, 2)])
    jumbled = "".join(random.sample(word, len(word)))
    others = random.sample([w for w in WORDS if sorted(w) != sorted(word) and len(w) == len(word)], 3)
    options = random.sample([word, *others], 4)
    return choice(f"Which word is made of exactly the letters of {jumbled}?", options, options.index(word))


def _forms(table: Mapping[str, str], question: str) -> Make:
    def make(random: Random, level: int) -> Task:
        words = random.sample(list(table), 2 * level - 1)
        gold = [table[word] for word in words]
        if level == 1:
            return text(question.format(words[0]), gold[0], words[0] + "s", words[0] + "ed")
        asked = question.format(" / ".join(words)) + " Answer in the same order, separated by commas."
        return listing(asked, gold, ordered=True)

    return make


def _opposites(random: Random, level: int) -> Task:
    word = random.choice(list(_OPPOSITES))
    rest = [value for key, value in _OPPOSITES.items() if key != word]
    options = random.sample([_OPPOSITES[word], *random.sample(rest, 2 + level)], 3 + level)
    return choice(f"Which word is the opposite of {word}?", options, options.index(_OPPOSITES[word]))


def _odd_one(random: Random, level: int) -> Task:
    kind, other = random.sample(list(_KINDS), 2)
    stranger = random.choice(_KINDS[other])
    options = random.sample([*random.sample(_KINDS[kind], 2 + level), stranger], 3 + level)
    return choice("Which word does not belong with the others?", options, options.index(stranger))


def _who_did(random: Random, level: int) -> Task:
    first, second, third = random.sample(NAMES, 3)
    past = random.choice(("thanked", "called", "visited", "helped"))
    thing = random.choice(WORDS)
    told = f"After {first} was {past} by {second}, {third} gave {first} the {thing}."
    asks: tuple[tuple[str, str], ...] = (
        (f"Who {past} somebody?", second),
        (f"Who got the {thing} first?", first),
        (f"Who gave the {thing} away first?", third),
    )
    if level > 1:
        told += f" Later {second} took the {thing} from {first}" + (
            f" and handed it to {third}." if level > 2 else "."
        )
        asks = (*asks[2:], (f"Who has the {thing} in the end?", third if level > 2 else second))
    asked, gold = random.choice(asks)
    return text(
        f"{told} {asked} Answer with the name.", gold, *[n for n in (first, second, third) if n != gold]
    )


MAKERS: dict[str, Make] = {
    "letter-counting": _letter_count,
    "vowel-counting": _vowels,
    "reversal": _reverse,
    "word-order": _word_order,
    "letter-replacement": _replacement,
    "vowel-removal": _without_vowels,
    "letter-positions": _letter_at,
    "letter-shifts": _caesar,
    "acronyms": _acronym,
    "run-lengths": _run_length,
    "naming-styles": _title_case,
    "word-sorting": _sort_words,
    "number-sorting": _sort_numbers,
    "word-lengths": _longest,
    "anagrams": _anagram,
    "plurals": _forms(_PLURALS, "What is the plural of: {}?"),
    "past-tense": _forms(_PASTS, "What is the simple past of the verb: {}?"),
    "opposites": _opposites,
    "odd-one-out": _odd_one,
    "who-did-what": _who_did,
}
