"""Trains Conductors and measures what they are worth: environments, rewards, baselines, evaluation."""
