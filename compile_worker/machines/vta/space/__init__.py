"""Search spaces of layers on VTA."""
