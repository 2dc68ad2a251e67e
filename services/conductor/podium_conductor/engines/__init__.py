"""Engines that make plans, one module each."""
