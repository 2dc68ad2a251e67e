"""Whole-system tests: four real processes and the demo provider on loopback."""
