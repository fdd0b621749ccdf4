"""`tilefarm bench memory`: a file for each group of rows."""
