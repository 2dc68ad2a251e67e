"""The workflow runner: pure async code over small ports, one for serving, training and tests."""
