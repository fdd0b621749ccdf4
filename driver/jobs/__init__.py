"""Tuning on a Ray cluster, from another machine: what is sent, what runs there, what comes back."""
