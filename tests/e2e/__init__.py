"""End to end: the real stack on the real local cloud, as a user runs it. Slow, and run in CI."""
