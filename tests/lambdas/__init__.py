"""Tests of what runs in Lambda. Nothing imports them."""
