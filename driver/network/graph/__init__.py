"""The float network: operators, shapes of their results, and these in numpy."""
