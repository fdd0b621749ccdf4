"""What becomes of a workload while it is compiled, step by step, for people to look at."""
