"""Machines: one folder for each, with all that is its own."""
