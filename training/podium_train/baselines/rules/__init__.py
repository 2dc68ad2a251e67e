"""The rules planner: splits a question by its words and reads cards. What a learned Conductor must beat."""
