"""JSON answers held to the client's schema, in a process that can be stopped."""
