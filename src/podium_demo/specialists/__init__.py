"""The specialists: each a function from an instruction and earlier results to an exact answer."""
