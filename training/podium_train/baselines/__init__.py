"""What a trained Conductor must beat."""
