"""VTA's host code: calls of its runtime as LLVM text."""
