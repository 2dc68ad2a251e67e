"""Proofs that the log only grows, what ties it to the world outside, and how its key changes."""
