"""The gateway: the HTTP edge that speaks to clients and runs the workflow."""
