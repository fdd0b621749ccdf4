"""The page of one row: its history as a picture and a table, its layers, its schedules."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import pairwise
from typing import Final

from tilefarm.measurement import DeviceClock
from tilefarm.printable import page_text as escape

from driver.jobs.nightly.page.history_chart import history_chart
from driver.jobs.nightly.page.sparkline import layer_sparklines
from driver.jobs.nightly.page.style import zoo_page
from driver.jobs.nightly.page.tables import Cell, TableRow, sortable
from driver.jobs.nightly.records import ChosenSchedule, LayerSample, Pass, Sample
from driver.jobs.nightly.words import (
    badge,
    change_text,
    commit_text,
    cost_text,
    night_file,
    night_text,
    spread,
)
from driver.jobs.nightly.zoo_history import RowHistory

_NIGHTS_LISTED: Final = 366
_FEW: Final = 0.0005
"""A layer's change below this share is none worth a column."""


def row_page(history: RowHistory) -> str:
    """`rows/NAME.html`."""
    samples = history.known
    body = f"<h1>{escape(str(history.row))}</h1>{_subtitle(history)}"
    body += f"<div class='scroll wide'>{history_chart(history)}</div>"
    if samples:
        body += f"<h2>Layers</h2>{_layers(history)}"
    body += f"<h2>Nights</h2>{_nights(history)}"
    if history.schedules:
        body += f"<h2>Schedules of the next night</h2>{''.join(map(_schedule, history.schedules))}"
    path = '<a href="../index.html">all models and targets</a>'
    return zoo_page(str(history.row), body, root="../", path=path)


def _subtitle(history: RowHistory) -> str:
    if not history.known:
        return ""
    last = history.known[-1]
    score = ""
    if last.answers.score is not None:
        score = f" · {last.answers.measure} {last.answers.score:.4g}"
    words = f"{last.machine.name} · {commit_text(last)}{score}"
    return f"<p class=sub>{escape(words)}</p>"


def _layers(history: RowHistory) -> str:
    """The last night's layers beside those of the night before, and how each has come there."""
    samples = history.known
    last = samples[-1]
    before = next((s for s in reversed(samples[:-1]) if s.machine == last.machine), None)
    earlier = {} if before is None else {layer.layer: layer for layer in before.time.layers}
    clock = last.machine.clock
    unit = "cycles" if clock is DeviceClock.CYCLES else "time"
    listed = {chosen.trace.digest.short for chosen in history.schedules}
    total = sum(layer.cost or 0.0 for layer in last.time.layers)
    lines = layer_sparklines(history)
    rows = (
        TableRow(
            [
                *_layer_cells(layer, earlier.get(layer.layer), clock, total, listed),
                Cell(lines.get(layer.layer, "")),
            ]
        )
        for layer in last.time.layers
    )
    head = ("layer", unit, "share", "the night before", "change", "schedule", "last nights")
    return sortable(head, rows)


def _layer_cells(
    layer: LayerSample,
    before: LayerSample | None,
    clock: DeviceClock,
    total: float,
    listed: Set[str],
) -> Iterator[Cell]:
    """`listed`: the schedules that the page has, by their first digits."""
    cost, old = layer.cost, before.cost if before else None
    name = f"{escape(layer.layer)}<small>{escape(layer.workload)}</small>"
    yield Cell(name, value=layer.layer)
    yield Cell("" if cost is None else cost_text(cost, clock), value=cost or "", is_number=True)
    share = cost / total if cost and total else None
    yield Cell("" if share is None else f"{share:.1%}", value=share or "", is_number=True)
    yield Cell("" if old is None else cost_text(old, clock), value=old or "", is_number=True)
    change = cost / old - 1 if cost and old else None
    text = f"{100 * change:+.2f} %" if change is not None and abs(change) >= _FEW else ""
    yield Cell(text, value="" if change is None else change, is_number=True)
    moved = before is not None and before.schedule != layer.schedule
    other = "<small>another than before</small>" if moved else ""
    schedule = escape(layer.schedule)
    link = f'<a href="#{schedule}">{schedule}</a>' if layer.schedule in listed else schedule
    yield Cell(link + other)


def _nights(history: RowHistory) -> str:
    known = history.known[-_NIGHTS_LISTED:]
    pairs = [*reversed([(None, known[0]), *pairwise(known)])] if known else []
    rows = (
        TableRow(list(_night_cells(history, before, now)), anchor=night_text(now.night))
        for before, now in pairs
    )
    head = ("night", "took", "spread", "change", "verdict", "found", "code")
    return sortable(head, rows, is_sorted=False)


def _night_cells(history: RowHistory, before: Sample | None, now: Sample) -> Iterator[Cell]:
    judged = history.verdict(now.night)
    found = history.sample(now.night, Pass.FOUND)
    clock = now.machine.clock
    yield Cell(
        f'<a href="../nights/{night_file(now.night)}">{night_text(now.night)}</a>', is_number=True
    )
    yield Cell(cost_text(now.time.cost, clock), is_number=True)
    yield Cell("" if clock is DeviceClock.CYCLES else f"±{spread(now):.1%}", is_number=True)
    yield Cell(change_text(judged), is_number=True)
    lines = history.lines(judged) if judged else []
    why = "".join(f"<small>{escape(line)}</small>" for line in lines) + _details(history, now.night)
    yield Cell((badge(judged.verdict) if judged else "") + why)
    better = found is not None and found.part is not now.part
    yield Cell(cost_text(found.time.cost, clock) if found and better else "", is_number=True)
    another = before is not None and before.order.code != now.order.code
    yield Cell(f"<b>{escape(commit_text(now))}</b>" if another else escape(commit_text(now)))


def _details(history: RowHistory, night: str) -> str:
    """What takes more than a line, folded."""
    details = history.reasons[night].details if night in history.reasons else ()
    return "".join(
        f"<details><summary><small>{escape(title)}</small></summary><pre>{escape(text)}</pre>"
        "</details>"
        for title, text in details
    )


def _schedule(chosen: ChosenSchedule) -> str:
    digest = chosen.trace.digest.short
    name = escape(chosen.workload.name)
    return (
        f"<details id={digest}><summary>{name} <code>{digest}</code></summary>"
        f"<pre>{escape(str(chosen.trace))}</pre></details>"
    )
