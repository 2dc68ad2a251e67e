"""Decisions about the keeping of records: holds, approvals, erasures."""
