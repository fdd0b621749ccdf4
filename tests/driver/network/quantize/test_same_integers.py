"""The same integers whatever orders the sums: threads of BLAS, and what libraries have for a
processor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("print_integers.py")
KIT = Path(__file__).parents[3]


def integers(**variables: str) -> dict[str, Any]:
    """The digests that a process prints which has these variables."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith("OPENBLAS_")}
    done = subprocess.run(
        [sys.executable, SCRIPT],
        env=environment | {"PYTHONPATH": str(KIT)} | variables,
        stdout=subprocess.PIPE,
        check=True,
    )
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def usual() -> dict[str, Any]:
    return integers(OPENBLAS_NUM_THREADS="1")


@pytest.mark.parametrize(
    "variables",
    [
        {"OPENBLAS_NUM_THREADS": "2"},
        # What older processors have, which this one can run; nobody reads it elsewhere.
        {
            "OPENBLAS_NUM_THREADS": "1",
            "OPENBLAS_CORETYPE": "NEHALEM",
            "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
        },
    ],
    ids=["threads", "processor"],
)
def test_integers_do_not_depend_on_the_order_of_sums(
    usual: dict[str, Any], variables: dict[str, str]
) -> None:
    assert len(usual) > 1
    assert integers(**variables) == usual
