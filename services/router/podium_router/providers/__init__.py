"""Providers, one module per protocol."""
