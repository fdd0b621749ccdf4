"""Passes on loops and local memory, whatever the machine: one file each."""
