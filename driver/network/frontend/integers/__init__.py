"""What is quantized in the file: pairs, quantized operators, integer layers, and their grids."""
