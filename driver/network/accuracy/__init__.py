"""How good a network's answers are: against labels, or against those of the float network."""
