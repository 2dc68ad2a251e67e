"""Runs code that a model wrote, in layers; which of them hold on a machine is probed, never assumed."""
