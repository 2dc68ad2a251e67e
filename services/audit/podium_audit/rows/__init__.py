"""What the stores keep beside records: rows by which things are found, and spans. Values only."""
