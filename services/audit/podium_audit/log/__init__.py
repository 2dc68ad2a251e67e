"""The log at work: batches, commits, seals, and the file that notices a rolled-back database."""
