"""Recorded answers of real models: the data folder's format, read strictly, and importers that write it."""
