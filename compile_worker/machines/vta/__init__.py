"""VTA: its limits, costs, spaces, lowering and host code."""
