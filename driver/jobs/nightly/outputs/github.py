"""A night on GitHub: annotations of a workflow's run, and the summary of its step.

What the lines mean: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tilefarm.plural import plural
from tilefarm.printable import printable

from driver.jobs.nightly.outputs.rows import NightRow, night_rows
from driver.jobs.nightly.records import Night
from driver.jobs.nightly.words import SIGNS, change_text, sample_text, verdict_words
from driver.jobs.nightly.zoo_history import ZooHistory

_SHOWN: Final = 10
"""Annotations of each kind that GitHub shows of a step."""
_ROWS: Final = 30
_OF_MARKDOWN: Final = frozenset("\\`*_{}[]<>()#+!|~&")


def github_annotations(zoo: ZooHistory, night: Night) -> Iterator[str]:
    """A line for each row that says something; those that GitHub would drop are counted."""
    rows = [row for row in night_rows(zoo, night) if not row.judged.is_quiet]
    for kind in ("error", "notice"):
        of_kind = [row for row in rows if row.judged.verdict.fails == (kind == "error")]
        for row in of_kind[: _SHOWN - 1]:
            message = _data("\n".join(row.lines) or row.title)
            yield f"::{kind} title={_property(row.title)}::{message}"
        if len(of_kind) >= _SHOWN:
            more = plural(len(of_kind) - (_SHOWN - 1), "more row")
            yield f"::{kind} title={more}::see the page of the night"


def step_summary(zoo: ZooHistory, night: Night) -> str:
    """Markdown for `$GITHUB_STEP_SUMMARY`: the counts, and a table of what is not as it was."""
    rows = night_rows(zoo, night)
    counts = {
        verdict: n for verdict in SIGNS if (n := sum(r.judged.verdict is verdict for r in rows))
    }
    told = ", ".join(f"{SIGNS[v]} {n} {verdict_words(v)}" for v, n in counts.items())
    lines = [f"## {_markdown(zoo.zoo)}, the night of {night.name}", "", told or "no rows", ""]
    lines += _table([row for row in rows if not row.judged.is_quiet])
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[NightRow]) -> Iterator[str]:
    if not rows:
        return
    yield "| row | verdict | change | took | why |"
    yield "|---|---|---:|---:|---|"
    for row in rows[:_ROWS]:
        verdict = row.judged.verdict
        took = sample_text(row.sample) if row.sample else ""
        cells = (
            _markdown(str(row.history.row)),
            f"{SIGNS[verdict]} {verdict_words(verdict)}",
            change_text(row.judged),
            took,
            _markdown(row.judged.why),
        )
        yield f"| {' | '.join(cells)} |"
    if len(rows) > _ROWS:
        yield f"| and {plural(len(rows) - _ROWS, 'row')} more | | | | |"


def _data(words: str) -> str:
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    return _data(words).replace(":", "%3A").replace(",", "%2C")


def _markdown(words: str) -> str:
    """Text that is no markup."""
    return "".join(f"&#{ord(sign)};" if sign in _OF_MARKDOWN else sign for sign in printable(words))
