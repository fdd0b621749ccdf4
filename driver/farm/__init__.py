"""Devices of a run: simulated ones started here or those of a farm, leased and fed."""
