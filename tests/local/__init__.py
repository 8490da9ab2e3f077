"""Tests of the embedded local cloud; the slow ones start the real engines."""
