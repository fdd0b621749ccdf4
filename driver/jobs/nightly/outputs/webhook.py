"""A night as the body of a webhook: a text for chats, and the same as data."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

from tilefarm.printable import printable

from driver.jobs.nightly.outputs.rows import NightRow, night_rows
from driver.jobs.nightly.records import Night
from driver.jobs.nightly.words import SIGNS, verdict_words
from driver.jobs.nightly.zoo_history import ZooHistory

SCHEMA: Final = 1
_LINES: Final = 20


def webhook_body(zoo: ZooHistory, night: Night) -> str:
    """JSON; `text` is what Slack, Mattermost and the like show, a line a row that has changed."""
    rows = night_rows(zoo, night)
    told = [row for row in rows if not row.judged.is_quiet]
    counts = Counter(row.judged.verdict for row in rows)
    words = ", ".join(f"{counts[v]} {verdict_words(v)}" for v in SIGNS if counts[v])
    lines = [f"{printable(zoo.zoo)}, {night.name}: {words or 'no rows'}"]
    lines += [f"{SIGNS[row.judged.verdict]} {row.title}" for row in told[:_LINES]]
    if len(told) > _LINES:
        lines.append(f"and {len(told) - _LINES} more")
    document = {
        "schema": SCHEMA,
        "text": "\n".join(lines),
        "zoo": zoo.zoo,
        "night": night.name,
        "fails": any(row.judged.verdict.fails for row in rows),
        "counts": {verdict.value: n for verdict, n in counts.items()},
        "rows": [_document(row) for row in told],
    }
    return json.dumps(document)


def _document(row: NightRow) -> dict[str, Any]:
    return {
        "model": row.history.row.model,
        "target": row.history.row.target,
        "verdict": row.judged.verdict.value,
        "change": row.judged.change,
        "lines": row.lines,
    }
