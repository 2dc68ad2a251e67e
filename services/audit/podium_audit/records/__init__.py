"""What records are made of: commands, facts, content under commitments, and runs as a fold over leaves."""
