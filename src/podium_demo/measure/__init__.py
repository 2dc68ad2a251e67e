"""Measures the specialists on generated items, for the cards in pool.demo.yaml."""
