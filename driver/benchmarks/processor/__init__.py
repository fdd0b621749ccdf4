"""`tilefarm bench processor`: layers on this machine's processor, beside its best library."""
