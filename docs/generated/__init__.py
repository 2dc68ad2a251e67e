"""The pages of docs/ that are generated from code, one module per page."""
