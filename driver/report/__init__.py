"""What a run shows people: one HTML page that needs no network, a trace, and tables."""

from __future__ import annotations

from pathlib import Path

from driver.atomic_write import write_atomically
from driver.report.page import page
from driver.report.summary import RunSummary

__all__ = ["page", "write_report"]


def write_report(summary: RunSummary, path: Path) -> None:
    """Write the report of a run to `path`, whole or not at all.

    Raises:
        OutputError: it cannot be written.
    """
    write_atomically(path, page(summary).encode())
