"""The protocols that clients speak, one module each: how a request is read and its answer told."""
