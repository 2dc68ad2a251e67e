"""The words the rules know: how requests begin, what only connects them, what names no input of its own."""

_STARTERS = """
add alphabetise alphabetize arrange average calculate capitalise capitalize change combine compute
concatenate convert count decode decrease deduct delete describe determine divide double encode
evaluate explain express find give halve how increase is join list lower lowercase make multiply name
negate order print put raise remove render repeat replace reverse round say show sort spell square
state subtract sum summarise summarize take tell title total translate triple turn upper uppercase
what what's when where which who whose why work write
"""
_FILLERS = """
after afterwards also and can could finally first i if kindly last lastly me need next now please
second secondly so that then third thirdly to want would you
"""
_EMPTY = """
a all alphabetically any are as at backwards base binary by capitals case characters character
consonants date day decimal digit digits do does down english for form from hex hexadecimal in into
its leap letter letters lower many much notation number numeral numerals octal of on order ordinal out
phrase result answer roman spaces string text the there together up upper vowels week weekday with
word words year
"""
QUESTION_WORDS = frozenset(("how", "is", "what", "what's", "when", "where", "which", "who", "whose", "why"))
"""Starters of questions."""
STARTERS = frozenset(_STARTERS.split())
"""First words of something asked."""
FILLERS = frozenset(_FILLERS.split())
"""Words that may stand before a starter."""
EMPTY = STARTERS | FILLERS | frozenset(_EMPTY.split())
"""Words that bring nothing to work on: a clause of these alone means an earlier result."""
