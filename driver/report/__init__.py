"""What a run shows people: one HTML page that needs no network, a trace, and tables."""

from __future__ import annotations

from pathlib import Path

from driver.report.page import page
from driver.report.summary import RunSummary

__all__ = ["page", "write_report"]


def write_report(summary: RunSummary, path: Path) -> None:
    """Write the report of a run to `path`, whole or not at all.

    Raises:
        OSError: the folder cannot be written.
    """
    draft = path.with_suffix(".draft")
    draft.write_text(page(summary), encoding="utf-8")
    draft.replace(path)
