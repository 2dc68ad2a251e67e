"""Engines: the ways to make a plan. Each fits the port in `podium_conductor.ports`."""
