"""Declarative files: tenants and pool, validated with a line number, reloaded while running."""
