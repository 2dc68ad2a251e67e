"""A witness: a small process that cosigns what a log shows it, and never two histories of one log."""
