"""What replicas of audit have in common beside the log: limits and leases, asked from the event loop."""
