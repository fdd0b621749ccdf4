"""The first page: what the last night says, and every model on every target at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tilefarm.measurement import DeviceClock
from tilefarm.plural import form, plural
from tilefarm.printable import page_text as escape

from driver.jobs.nightly.page.sparkline import sparkline
from driver.jobs.nightly.page.style import tools, zoo_page
from driver.jobs.nightly.page.tables import Cell, TableRow, sortable
from driver.jobs.nightly.records import Judged, Night, Row
from driver.jobs.nightly.words import (
    SIGNS,
    badge,
    change_text,
    commit_text,
    cost_text,
    night_file,
    night_text,
    row_file,
    spread,
    verdict_words,
)
from driver.jobs.nightly.zoo_history import RowHistory, ZooHistory

_NIGHTS_LISTED: Final = 30


def front_page(zoo: ZooHistory) -> str:
    """`index.html`."""
    last = zoo.last
    title = f"<h1>{escape(zoo.zoo)}, night by night</h1>"
    if last is None:
        return zoo_page(zoo.zoo, f"{title}<p>There was no night yet.</p>")
    judged = [each for history in zoo.rows if (each := history.verdict(last.name))]
    body = (
        f"{title}<p class=sub>{_headline(zoo, last)}</p>{_tiles(judged)}"
        f"{_legend(zoo)}{_matrix(zoo, last)}<h2>What changed</h2>{changes(zoo, last)}"
        f"<h2>Nights</h2>{_nights(zoo)}"
        '<p class=sub><a href="feed.xml">a feed of changes</a> ·'
        ' <a href="nights.json">everything here as JSON</a></p>'
    )
    return zoo_page(zoo.zoo, body)


def changes(zoo: ZooHistory, night: Night, *, root: str = "") -> str:
    """The rows of a night that say something, those first that matter most."""
    found = [
        (history, each)
        for history in zoo.rows
        if (each := history.verdict(night.name)) and not each.is_quiet
    ]
    if not found:
        return "<p>Nothing: every row is what it was.</p>"
    order = list(SIGNS)
    found.sort(key=lambda pair: (order.index(pair[1].verdict), -abs(pair[1].change or 0.0)))
    return f"<ul>{''.join(_change(history, each, root) for history, each in found)}</ul>"


def _change(history: RowHistory, judged: Judged, root: str) -> str:
    change = change_text(judged)
    reasons = "".join(f"<small>{escape(line)}</small>" for line in history.lines(judged))
    link = _row_link(history.row, root)
    return f"<li>{badge(judged.verdict)} {link} <b>{change}</b>{reasons}</li>"


def _row_link(row: Row, root: str = "") -> str:
    return f'<a href="{root}rows/{row_file(row)}">{escape(str(row))}</a>'


def _headline(zoo: ZooHistory, last: Night) -> str:
    began = escape(last.name.replace("T", " ").replace("Z", " UTC"))
    took = "" if last.ended is None else f" · {(last.ended - last.began) / 60:.0f} min"
    stopped = f" · {escape(last.why_ended)}" if last.why_ended else ""
    going = " · not ended" if last.ended is None else ""
    codes = {commit_text(s) for h in zoo.rows for s in h.samples if s.night == last.name}
    code = f" · code {escape(', '.join(sorted(codes)))}" if codes else ""
    link = f'<a href="nights/{night_file(last.name)}">{began}</a>'
    return f"the night of {link}{took}{code}{going}{stopped}"


def _tiles(judged: Sequence[Judged]) -> str:
    counts = Counter(each.verdict for each in judged)
    cells = "".join(
        f'<a class=tile href="#only={verdict.value}"><b class="{verdict.value}">{SIGNS[verdict]}'
        f" {counts[verdict]}</b><span>{verdict_words(verdict)}</span></a>"
        for verdict in SIGNS
        if counts[verdict]
    )
    return f"<div class=tiles>{cells}</div>"


def _legend(zoo: ZooHistory) -> str:
    there = {each.verdict for history in zoo.rows for each in history.judged[-1:]}
    verdicts = tuple(
        (verdict.value, f"{sign} {verdict_words(verdict)}")
        for verdict, sign in SIGNS.items()
        if verdict in there
    )
    return tools(verdicts)


def _matrix(zoo: ZooHistory, night: Night) -> str:
    """A row a model, a column a target."""
    return sortable(("model", *zoo.targets), (_matrix_row(zoo, m, night) for m in zoo.models))


def _matrix_row(zoo: ZooHistory, model: str, night: Night) -> TableRow:
    found = [zoo.at(Row(model, target)) for target in zoo.targets]
    verdicts = [
        each.verdict.value for history in found if history and (each := history.verdict(night.name))
    ]
    cells = [Cell(escape(model)), *(_matrix_cell(history, night) for history in found)]
    return TableRow(cells, verdicts=verdicts)


def _matrix_cell(history: RowHistory | None, night: Night) -> Cell:
    """What it takes, what became of it, and its last nights as a line."""
    if history is None:
        return Cell("")
    judged, samples = history.verdict(night.name), history.known
    sign = badge(judged.verdict) if judged else ""
    change = f" {change_text(judged)}" if judged and judged.change else ""
    if not samples:
        return Cell(f'<a href="rows/{row_file(history.row)}">–</a><small>{sign}</small>')
    last = samples[-1]
    clock, noise = last.machine.clock, ""
    if clock is DeviceClock.SECONDS:
        noise = f" <span class=sub>±{spread(last):.1%}</span>"
    text = cost_text(last.time.cost, clock)
    link = f'<a href="rows/{row_file(history.row)}">{text}</a>'
    markup = f"{link}{noise}<small>{sign}{change}</small>{sparkline(history)}"
    return Cell(markup, value=last.time.cost, is_number=True)


def _nights(zoo: ZooHistory) -> str:
    recent = list(reversed(zoo.nights))[:_NIGHTS_LISTED]
    older = len(zoo.nights) - len(recent)
    more = f"<p class=sub>and {plural(older, 'earlier night')}</p>" if older else ""
    rows = (TableRow(list(_night_cells(zoo, night))) for night in recent)
    head = ("night", "verdicts", "minutes", "")
    return sortable(head, rows, is_sorted=False) + more


def _night_cells(zoo: ZooHistory, night: Night) -> Iterator[Cell]:
    judged = [each for history in zoo.rows if (each := history.verdict(night.name))]
    counts = Counter(each.verdict for each in judged if not each.is_quiet)
    told = [f"{badge(v)} {counts[v]}" for v in SIGNS if counts[v]]
    quiet = sum(each.is_quiet for each in judged)
    if quiet:
        told.append(f"{quiet} {form(quiet, 'row', 'rows')} as before")
    took = "" if night.ended is None else f"{(night.ended - night.began) / 60:.0f}"
    yield Cell(
        f'<a href="nights/{night_file(night.name)}">{night_text(night.name)}</a>', is_number=True
    )
    yield Cell(", ".join(told))
    yield Cell(took, is_number=True)
    yield Cell(escape(night.why_ended))
