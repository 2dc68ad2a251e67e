"""Finds what stands inside quotes, so that nothing there is taken for structure."""

_CLOSING = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\N{LEFT DOUBLE QUOTATION MARK}": "\N{RIGHT DOUBLE QUOTATION MARK}",
    "\N{LEFT SINGLE QUOTATION MARK}": "\N{RIGHT SINGLE QUOTATION MARK}",
}


def mask_quotes(text: str) -> str:
    """Return `text` with everything inside quotes blanked by NUL characters, at the same places.

    A quote that never closes, or that stands within a word (`what's`), opens nothing.
    """
    masked = list(text)
    position = 0
    while position < len(text):
        closing = _CLOSING.get(text[position])
        starts_word = position == 0 or not text[position - 1].isalnum()
        end = text.find(closing, position + 1) if closing and starts_word else -1
        if end > position:
            masked[position : end + 1] = "\0" * (end + 1 - position)
            position = end
        position += 1
    return "".join(masked)
