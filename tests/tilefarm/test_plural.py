"""One of something has no s, in any message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tilefarm.plural import plural

ROOT = Path(__file__).parents[2]
COUNTED = "trial|sample|image|device|kernel|worker|workload|step|call|operator|batche|core|token"
FIXED = re.compile(rf'f"[^"]*\{{[^}}]*\}} ({COUNTED})s\b')


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 trials"), (1, "1 trial"), (2, "2 trials"), (1000, "1000 trials")]
)
def test_a_count_and_its_noun(count: int, words: str) -> None:
    assert plural(count, "trial") == words


def test_a_noun_of_its_own_kind() -> None:
    assert plural(1, "batch", "batches") == "1 batch"
    assert plural(2, "batch", "batches") == "2 batches"


@pytest.mark.parametrize("room", ["commands", "farm", "jobs", "program", "report", "tune"])
def test_no_message_of_a_run_counts_one_trials(room: str) -> None:
    files = sorted((ROOT / "driver" / room).rglob("*.py"))
    assert files
    found = [
        f"{file.name}: {line.strip()}"
        for file in files
        for line in file.read_text().splitlines()
        if FIXED.search(line)
    ]
    assert found == []
