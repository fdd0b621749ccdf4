"""Searches a space of schedules: proposers, cost model, trial allocation, records."""
