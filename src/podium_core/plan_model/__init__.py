"""The embedded plan model: reads a question and the cards, and decides a plan. Arithmetic only, no I/O."""
