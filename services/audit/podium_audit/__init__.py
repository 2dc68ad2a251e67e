"""The audit service: a durable, provable record of every decision."""
