"""Tests of runner/redact: what is replaced, what is refused, and that nothing gets past both."""
