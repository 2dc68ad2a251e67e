"""Timings of the whole system, printed beside the direct upstream. Nothing here asserts."""
