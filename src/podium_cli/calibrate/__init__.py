"""`podium calibrate`: measures workers on graded items and writes what they can do on their cards."""
