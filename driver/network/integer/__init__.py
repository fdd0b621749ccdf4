"""The integer network: its operators, kernel calls, and what both compute, bit for bit."""
