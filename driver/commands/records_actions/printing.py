"""Records as rows of a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tilefarm.printable import printable

if TYPE_CHECKING:
    from tuner.schedule_store import ScheduleRecord


def cost_text(record: ScheduleRecord) -> str:
    """`3 468 cycles`, or `12.3 us`."""
    from driver.report.cost import microseconds

    if record.cycles is not None:
        return f"{record.cycles:,} cycles".replace(",", " ")
    return microseconds(record.cost)


def day(record: ScheduleRecord) -> str:
    """When it was measured: 2026-11-26."""
    return datetime.fromtimestamp(record.ended, UTC).date().isoformat()


def document(record: ScheduleRecord) -> dict[str, object]:
    """It as JSON, with the name of its workload."""
    return {"name": record.workload.name, **json.loads(record.to_json())}


def print_json(found: object) -> None:
    """One document."""
    print(json.dumps(found))


def print_table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Rows under titles; nothing in them that a terminal obeys."""
    from driver.report.terminal.text_table import text_table

    cells = [tuple(printable(cell) for cell in row) for row in rows]
    for line in text_table(titles, cells):
        print(line)
