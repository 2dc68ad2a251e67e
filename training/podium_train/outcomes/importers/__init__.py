"""Importers: public sources' own files, from a local copy, into a data folder. Nothing is downloaded."""
