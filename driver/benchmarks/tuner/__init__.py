"""How many trials the proposers of the tuner need, in exact cycles."""
