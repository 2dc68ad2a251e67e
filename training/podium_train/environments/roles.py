"""What a simulator takes a subtask for: a small grammar of words, and of what the step may see.

Real workers read the subtask; simulated ones only its role. The words are English and German, as the worked
examples of the planning prompt are. What no rule names is solving.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache


class Role(StrEnum):
    """What a step does for the answer."""

    SOLVE = "solve"
    """Answers the question, alone."""
    PLAN = "plan"
    """Prepares: the steps to take, what to watch; no answer."""
    VERIFY = "verify"
    """Checks an answer that it sees."""
    REFINE = "refine"
    """Corrects an answer that it sees, guided by a check if it sees one."""
    AGGREGATE = "aggregate"
    """Makes one answer of the answers that it sees."""


EXAMPLES: Mapping[Role, str] = {
    Role.SOLVE: "Solve the task on your own, step by step, and end with the final answer.",
    Role.PLAN: "Outline how to approach the task and what is easily overlooked. Give no answer yet.",
    Role.VERIFY: "Check the answer you see for mistakes, step by step, and say whether it is right.",
    Role.REFINE: "Correct the answer you see where the check found mistakes, and give the final answer.",
    Role.AGGREGATE: "Compare the answers you see, decide between them, and give the final answer.",
}
"""A subtask for each role that the grammar reads as that role, where the step sees what the role needs."""

_WORDS: Mapping[Role, tuple[str, ...]] = {
    Role.AGGREGATE: (
        r"compar\w+|combin\w+|merg\w+|synthesi[sz]\w+|reconcil\w+|aggregat\w+|consolidat\w+|consensus",
        r"majority|vot(e|es|ing)|weigh\w*|decide between|(choose|select|pick) (the )?(best|right|correct)\w*",
        r"(choose|select|pick) (between|among)|vergleich\w*|zusammenf(ü|ue)hr\w*|mehrheit",
    ),
    Role.REFINE: (
        r"refin(e|es|ing)|improv(e|es|ing)|fix(es|ing)?|revis(e|es|ing)|repair\w*|rewrite|polish",
        r"correct (the|this|that|it|any|all|every|each|where|what|mistakes?|errors?)",
        r"verbesser\w*|korrigier\w*|(ü|ue)berarbeit\w*",
    ),
    Role.VERIFY: (
        r"verif(y|ies|ying)|(double-?)?check(s|ing)?|review(s|ing)?|validat(e|es|ing)|audit\w*|inspect\w*",
        r"critici[sz]e\w*|critiqu\w+|confirm(s|ing)?|look for (errors|mistakes)",
        r"find (any |the |all )?(errors?|mistakes?)|pr(ü|ue)fe?n?|kontrollier\w*",
    ),
    Role.PLAN: (
        r"outlin(e|es|ing)|plan (how|the|a|an|your|out)|(make|write|draft|give) a plan|strategy|decompos\w+",
        r"break\w* (it |this |the \w+ )?(down|into)|how to approach|no (answer|solution) yet|noch keine",
        r"list the (steps|conditions|constraints|facts)|do not (solve|answer)|without (solving|answering)",
    ),
}
_PATTERNS = {role: re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE) for role, words in _WORDS.items()}


@lru_cache(maxsize=4_096)
def role_of(subtask: str, *, sees_answers: bool, is_answer: bool) -> Role:
    """Return the role of a step.

    `sees_answers` says whether it may see an earlier answer: without one there is nothing to compare, check
    or correct, so such a step solves. The answering step never only plans. Of several roles the one that is
    named first counts; an empty subtask solves.
    """
    roles = [] if is_answer else [Role.PLAN]
    if sees_answers:
        roles += [Role.AGGREGATE, Role.REFINE, Role.VERIFY]
    found = [(match.start(), role) for role in roles if (match := _PATTERNS[role].search(subtask))]
    return min(found, default=(0, Role.SOLVE), key=lambda pair: pair[0])[1]
