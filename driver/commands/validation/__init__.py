"""Proof of what was done to a network: where each layer is, how exact, and that it is right."""
