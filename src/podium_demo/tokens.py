"""How the demo provider counts tokens and cuts its output into deltas.

Its tokenizer is stated, so that its usage numbers are honest: one token is four bytes of UTF-8 or part
thereof, counted per message, plus three tokens per message for its role and boundaries.
"""

import re

_BYTES_PER_TOKEN = 4
MESSAGE_OVERHEAD_TOKENS = 3
_WORD = re.compile(r"\s*\S+\s*$|\s*\S+|\s+")


def count_tokens(text: str) -> int:
    """Return the number of tokens of `text` alone."""
    return -(-len(text.encode(errors="surrogatepass")) // _BYTES_PER_TOKEN)


def deltas_of(text: str) -> list[str]:
    """Return `text` in word-wise pieces, which joined give it back."""
    return _WORD.findall(text)


def first_tokens(text: str, limit: int) -> str:
    """Return the longest beginning of `text` that has at most `limit` tokens."""
    data = text.encode(errors="surrogatepass")
    return text if count_tokens(text) <= limit else data[: limit * _BYTES_PER_TOKEN].decode(errors="ignore")
