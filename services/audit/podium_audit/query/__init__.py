"""Runs by what they had: searched, paged and exported."""
