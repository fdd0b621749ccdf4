"""Tensor expressions: what an operator computes, before anything says how."""

from compile_worker.te.operators import nest_of

__all__ = ["nest_of"]
