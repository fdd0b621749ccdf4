"""Rewrites of the float network that leave its results alone: fewer, larger operators."""
