"""The conductor: writes plans."""
