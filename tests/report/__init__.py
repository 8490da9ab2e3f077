"""The report in memory and in a real browser."""
