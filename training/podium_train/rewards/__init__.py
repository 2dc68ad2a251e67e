"""What a finished run is worth, and how an answer is graded, model-written code included."""
