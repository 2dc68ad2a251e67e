"""Policies that learn: supervised warm start, GRPO, their checkpoints, alarms and curves."""
