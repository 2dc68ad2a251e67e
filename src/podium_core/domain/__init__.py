"""Pure types and rules of Podium. Standard library only; no clock, no randomness, no I/O."""
