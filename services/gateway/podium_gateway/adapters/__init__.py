"""The runner's ports over gRPC, one outside service per module."""
