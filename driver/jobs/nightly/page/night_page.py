"""The page of one night: what it says of every row."""

from __future__ import annotations

from collections.abc import Iterator

from tilefarm.printable import page_text as escape

from driver.jobs.nightly.page.front import changes
from driver.jobs.nightly.page.style import tools, zoo_page
from driver.jobs.nightly.page.tables import Cell, TableRow, sortable
from driver.jobs.nightly.records import Judged, Night, Pass
from driver.jobs.nightly.words import (
    SIGNS,
    badge,
    change_text,
    commit_text,
    cost_text,
    night_text,
    row_file,
    sample_text,
    verdict_words,
)
from driver.jobs.nightly.zoo_history import RowHistory, ZooHistory


def night_page(zoo: ZooHistory, night: Night) -> str:
    """`nights/NAME.html`."""
    judged = [(h, each) for h in zoo.rows if (each := h.verdict(night.name))]
    there = {each.verdict for _, each in judged}
    verdicts = tuple((v.value, f"{SIGNS[v]} {verdict_words(v)}") for v in SIGNS if v in there)
    rows = (TableRow(list(_cells(h, each)), verdicts=(each.verdict.value,)) for h, each in judged)
    head = ("row", "verdict", "change", "took", "compared with", "found", "score", "differ", "code")
    why = f"<p class=sub>{escape(night.why_ended)}</p>" if night.why_ended else ""
    body = (
        f"<h1>{escape(zoo.zoo)}, the night of {night_text(night.name)}</h1>{why}"
        f"<h2>What changed</h2>{changes(zoo, night, root='../')}"
        f"<h2>Every row</h2>{tools(verdicts)}{sortable(head, rows)}"
    )
    path = '<a href="../index.html">all models and targets</a>'
    return zoo_page(f"{zoo.zoo}, {night_text(night.name)}", body, root="../", path=path)


def _cells(history: RowHistory, judged: Judged) -> Iterator[Cell]:
    known, found = history.sample(judged.night), history.sample(judged.night, Pass.FOUND)
    sample = known or found
    yield Cell(f'<a href="../rows/{row_file(history.row)}">{escape(str(history.row))}</a>')
    yield Cell(f"{badge(judged.verdict)}<small>{escape(judged.why)}</small>")
    value = "" if judged.change is None else judged.change
    yield Cell(change_text(judged), value=value, is_number=True)
    took = "" if sample is None else sample_text(sample)
    yield Cell(took, value="" if sample is None else sample.time.cost, is_number=True)
    yield Cell(night_text(judged.against))
    clock = None if found is None else found.machine.clock
    better = found is not None and known is not None
    text = cost_text(found.time.cost, clock) if found and clock and better else ""
    yield Cell(text, is_number=True)
    answers = None if sample is None else sample.answers
    has_score = answers is not None and answers.score is not None
    yield Cell(f"{answers.score:.4g}" if answers and has_score else "", is_number=True)
    yield Cell("" if answers is None else str(answers.differing), is_number=True)
    yield Cell("" if sample is None else escape(commit_text(sample)))
