"""What may be written next: the state in memory, and the checks that every kind of record must pass."""
