"""Erasure as it is asked for and carried out: over HTTP, by key roles, finished after every crash."""
