"""What people and their tools read over HTTP: lists, runs, exports."""
