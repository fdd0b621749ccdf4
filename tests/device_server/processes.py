"""Servers as processes of their own, for tests that end them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

from kit.farm.in_process import TOKEN

TRACKER = f"""
    from device_server.tracker import process
    from tilefarm.rpc.security import Security
    from tilefarm.trust.tokens import SharedSecret
    process.serve(security=Security(tokens=SharedSecret({TOKEN!r})),
                  on_ready=lambda a: print(a, flush=True), die_with_parent=True)
"""
"""Code of a tracker that prints its address."""

DEVICE = f"""
    import sys
    from pathlib import Path
    from device_server.device import process
    from tilefarm.rpc.security import Security
    from tilefarm.target import TARGETS
    from tilefarm.trust.tls import Credentials
    from tilefarm.trust.tokens import SharedSecret
    process.serve(name="sim0", target=TARGETS["sim"], tracker=sys.argv[1],
                 security=Security(tokens=SharedSecret({TOKEN!r})),
                 credentials=Credentials(token={TOKEN!r}),
                 folder=Path(sys.argv[2]), runtime=None,
                 on_ready=lambda a: print(a, flush=True), die_with_parent=True)
"""
"""Code of a device that prints its address; arguments: the tracker's address, a folder."""


@contextmanager
def process(code: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A Python process, and the first line that it said; killed in the end."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        try:
            assert it.stdout is not None
            yield it, it.stdout.readline().strip()
        finally:
            it.kill()


def ended(it: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code of a process that ends by itself, and what it wrote on stderr."""
    _, errors = it.communicate(timeout=60)
    return it.returncode, errors
