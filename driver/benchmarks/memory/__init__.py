"""Benchmarks of the memory scheduler."""
