"""The torch twin of the embedded plan model, and its export."""
