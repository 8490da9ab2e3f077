"""Tests of the template, its assets and the way it is synthesised. One synth per session."""
