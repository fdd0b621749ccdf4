"""Searches the best schedule of every workload: a pure campaign, and the loop around it."""
