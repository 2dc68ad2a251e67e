"""Systems measured on the same items: metrics, intervals, tables, plots."""
