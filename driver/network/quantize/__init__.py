"""Float network to integer network: ranges, scales, and a rule for each operator."""
