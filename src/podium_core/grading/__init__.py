"""Rule-based graders and graded items, shared by calibration and training. Pure: text in, grade out."""
