"""What the installed command sets before anything heavy is imported."""

from __future__ import annotations

import os
import subprocess
import sys

SHOWN = (
    "import os, sys, driver.cli as cli;"
    "cli.main = lambda: print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules) or 0;"
    "cli.entry_point()"
)


def said(**variables: str) -> str:
    environment = {n: v for n, v in os.environ.items() if n != "OPENBLAS_NUM_THREADS"} | variables
    done = subprocess.run(
        [sys.executable, "-c", SHOWN], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_products_are_made_by_one_thread_unless_the_user_wants_more() -> None:
    assert said() == "1 False"
    assert said(OPENBLAS_NUM_THREADS="3") == "3 False"
