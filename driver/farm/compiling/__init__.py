"""Compile workers of a run: a queue of batches for Ray, or for processes of ours."""
