"""Where records live, one module per database."""
