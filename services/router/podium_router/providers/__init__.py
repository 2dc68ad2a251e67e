"""Clients of model providers: one module per protocol."""
