"""`podium replay`: a run performed again: from its record, by today's planner, or by today's pool."""
