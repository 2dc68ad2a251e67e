"""The conductor service: reads a question and the cards of the eligible workers, writes the plan."""
