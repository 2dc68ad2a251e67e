"""Skills of doing exactly as told: how many words, which letters, what shape."""

from random import Random
from typing import Literal

from podium_core.grading.constraints import Rules
from podium_core.grading.items import Make, Task, rules, text
from podium_core.grading.skills.vocabulary import COLOURS, WORDS


def _exact_words(random: Random, level: int) -> Task:
    count, topic = random.randint(4, 6 * level), random.choice(WORDS)
    gold = " ".join([topic, *["and", "so", "on", "it", "goes"] * count][:count])
    asked = f"Write a text of exactly {count} words that contains the word {topic}."
    return rules(
        asked, Rules(word_count=count, includes=(topic,)), gold, f"{gold} more", gold.replace(topic, "thing")
    )


def _forbidden_letter(random: Random, level: int) -> Task:
    letter, count = random.choice("etaoinsr"[: 2 + 2 * level]), 3 + 2 * level
    words = [w for w in (*WORDS, *COLOURS, "my", "sun", "hut", "dog") if letter not in w]
    chosen = random.sample(words, count)
    gold = " ".join(chosen)
    asked = (
        f"Write exactly {count} English words, the first {chosen[0]}, none with the letter {letter} in it."
    )
    grader = Rules(word_count=count, forbidden_letters=letter, first_word=chosen[0])
    return rules(asked, grader, gold, f"{' '.join(chosen[:-1])} {letter}x", f"{gold} sky")


def _bookends(random: Random, level: int) -> Task:
    first, last = random.sample(WORDS, 2)
    count = random.randint(4, 5 + 3 * level)
    gold = " ".join([first, *["of"] * (count - 2), last])
    asked = f"Write one line of exactly {count} words that begins with the word {first} and ends with the word {last}."
    grader = Rules(word_count=count, first_word=first, last_word=last, line_count=1)
    return rules(asked, grader, gold, f"{last} {gold}", gold.replace(last, first))


def _initials(random: Random, level: int) -> Task:
    name = "".join(random.choice("abcdefghilmnoprstw") for _ in range(2 + 2 * level))
    by_initial = {word[0]: word for word in (*WORDS, *COLOURS, "table", "east", "down", "old", "ideal")}
    words = [by_initial[letter] for letter in name]
    asked = f"Write {len(name)} English words whose first letters are, in this order: {', '.join(name)}."
    return rules(
        asked, Rules(initials=name), " ".join(words), " ".join(reversed(words)) + " zoo", " ".join(words[:-1])
    )


def _line_shape(random: Random, level: int) -> Task:
    lines, each = random.randint(2, 3 + level), random.randint(2, 3 + level)
    gold = "\n".join(" ".join(random.sample(WORDS, each)) for _ in range(lines))
    topic = gold.split()[-1]
    asked = f"Write exactly {lines} lines of exactly {each} words each, with {topic} among the words."
    if level > 1:
        asked += " Use lower-case letters only."
    case: Literal["lower", "any"] = "lower" if level > 1 else "any"
    grader = Rules(line_count=lines, words_per_line=each, includes=(topic,), case=case)
    return rules(asked, grader, gold, gold + "\nmore", gold.replace("\n", " "))


def _sentences(random: Random, level: int) -> Task:
    count, words = random.randint(2, 2 + level), random.sample(WORDS, level)
    gold = " ".join(["I see it."] * (count - 1) + [f"Here is {' and '.join(words)}."])
    asked = f"Write exactly {count} sentences, each ended by a full stop, that contain: {', '.join(words)}."
    return rules(
        asked, Rules(sentence_count=count, includes=tuple(words)), gold, gold + " Yes.", "Here it is."
    )


def _capitals(random: Random, level: int) -> Task:
    count, topic = random.randint(3, 3 + 2 * level), random.choice(WORDS)
    gold = " ".join([topic, *random.sample([w for w in WORDS if w != topic], count - 1)]).upper()
    asked = f"Write exactly {count} different words, all in capital letters, one of them {topic.upper()}."
    grader = Rules(word_count=count, case="upper", includes=(topic,), are_words_distinct=True)
    return rules(asked, grader, gold, gold.lower(), f"{gold} {topic.upper()}")


def _repetition(random: Random, level: int) -> Task:
    word, count = random.choice(WORDS), random.randint(3, 4 * level)
    mark = random.choice((" ", "-", ", "))
    name = {" ": "a space", "-": "a hyphen", ", ": "a comma and a space"}[mark]
    gold = mark.join([word] * count)
    return text(
        f"Write the word {word} exactly {count} times, joined by {name}.",
        gold,
        gold + mark + word,
        mark.join([word] * (count - 1)),
    )


def _step_list(random: Random, level: int) -> Task:
    word = random.choice(WORDS)
    steps = [
        ("write it in capital letters", str.upper), ("double its last letter", lambda w: w + w[-1]),
        ("remove its first letter", lambda w: w[1:]), ("write it backwards", lambda w: w[::-1]),
        ("put an x in front", lambda w: "x" + w), ("add its first letter at the end", lambda w: w + w[0]),
    ]  # fmt: skip
    chosen = random.sample(steps, 1 + level)
    gold = word
    for _, step in chosen:
        gold = step(gold)
    told = "; then ".join(told for told, _ in chosen)
    return text(
        f"Take the word {word}. {told.capitalize()}. What do you have?",
        gold,
        word,
        gold[::-1] + "y",
        fold_case=False,
    )


MAKERS: dict[str, Make] = {
    "exact-word-count": _exact_words,
    "forbidden-letters": _forbidden_letter,
    "first-and-last-word": _bookends,
    "given-initials": _initials,
    "line-shapes": _line_shape,
    "sentence-count": _sentences,
    "capital-letters": _capitals,
    "exact-repetition": _repetition,
    "step-lists": _step_list,
}
