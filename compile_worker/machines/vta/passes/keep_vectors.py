"""Loops that a schedule asks vectors for are vectors in host code too, and no others.

vectorized i in 0:64: y[i] = x[i]    ->    as it is
vectorized i in 0:64: y[i] = f(x[i])    ->    for i in 0:64: …        f on floats, or no vector
"""

from __future__ import annotations

from tilefarm.target import Target

from compile_worker.ir.func import Func
from compile_worker.passes.vectorize_loops import marked_vectors


def keep_vectors(func: Func, target: Target) -> Func:
    """Leave vectors where a schedule asks for them and there is code for any processor."""
    del target
    return marked_vectors(func)
