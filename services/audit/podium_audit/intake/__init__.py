"""Spans from outside: decoded, stripped to what is allowed, kept for a while, joined to their runs."""
