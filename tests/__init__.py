"""Tests of every part, one folder per part."""
