"""The Merkle tree outside memory: tiles, checkpoints, and what witnesses sign."""
