"""Nights that nobody had to wait for: what verdicts are worth, and what a history takes."""
