"""The verbs of podium-train, one module each."""
