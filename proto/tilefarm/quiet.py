"""Environment of libraries that read it when they are imported."""

from __future__ import annotations

import os


def quiet_libraries() -> None:
    """Set it; call this before gRPC and numpy are imported.

    gRPC's fork handlers wait for its own threads, and Ray, which forks to start, would never come
    up beside live channels. What gRPC logs, its errors say as well.

    The threads of numpy's BLAS wait for each other by spinning: on a processor that compiles,
    simulates or serves others as well, a product took ten times the processor time of one thread.
    """
    os.environ.update(GRPC_ENABLE_FORK_SUPPORT="0", GRPC_VERBOSITY="NONE")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
