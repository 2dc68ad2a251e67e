"""The rules engine: a small honest planner over cards. A baseline, not a learned plan; its source says so."""
