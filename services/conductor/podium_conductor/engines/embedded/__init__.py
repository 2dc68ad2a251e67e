"""The embedded engine: a small model of our own training, for CPUs, without torch, in the base install."""
