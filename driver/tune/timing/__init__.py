"""The timing of a target as its own measurements say it is: trials, the fit, what it is worth."""
