"""Learning: the text encoder, the supervised warm start, and reinforcement."""
