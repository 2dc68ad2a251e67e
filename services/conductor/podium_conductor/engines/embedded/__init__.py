"""The embedded engine's slot: a small model for CPUs, without torch, in the base install.

Its weights are not trained yet. Until a weights folder exists it refuses to start, and it never guesses.
"""
