"""A history for other tools: one JSON document, or flat tables as CSV.

Every table has one type a column, times in ISO 8601, empty cells for what is not known, and nothing
nested, so that Parquet, a data frame or a spreadsheet takes it as it is. Both are written night by
night: ten years need no more memory than one night.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from tilefarm.system_errors import unwritable

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.records import Sample

SCHEMA: Final = 1
"""Of the document and the tables: a column may be added, none changes its meaning."""

Record: TypeAlias = Mapping[str, str | int | float | None]


def export_json(history: History, path: Path) -> None:
    """The whole history as one document: an array of flat records for each table.

    Raises:
        OutputError: the file cannot be written, or the history not read.
    """

    def write(file: IO[str]) -> None:
        file.write(f'{{"schema": {SCHEMA}, "zoo": {json.dumps(history.zoo)}')
        for name, records in TABLES.items():
            file.write(f',\n"{name}": [')
            for number, record in enumerate(records(history)):
                file.write((",\n" if number else "\n") + json.dumps(dict(record)))
            file.write("]")
        file.write("}\n")

    _written(path, write)


def export_csv(history: History, folder: Path) -> list[Path]:
    """A file for each table; which ones. A table without rows has its header alone.

    Raises:
        OutputError: a file cannot be written, or the history not read.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    written = []
    for name, records in TABLES.items():

        def write(
            file: IO[str],
            columns: Iterable[str] = COLUMNS[name],
            records: Callable[[History], Iterator[Record]] = records,
        ) -> None:
            rows = csv.DictWriter(file, list(columns), lineterminator="\n")
            rows.writeheader()
            rows.writerows(records(history))

        _written(folder / f"{name}.csv", write)
        written.append(folder / f"{name}.csv")
    return written


def iso(seconds: float | None) -> str | None:
    """A time in UTC, to the millisecond."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _nights(history: History) -> Iterator[Record]:
    for night in history.nights():
        yield {
            "night": night.name,
            "began": iso(night.began),
            "ended": iso(night.ended),
            "why_ended": night.why_ended,
            "after": night.after,
        }


def _samples(history: History) -> Iterator[Record]:
    for sample in _by_night(history, layers=False):
        time, answers, order, machine = sample.time, sample.answers, sample.order, sample.machine
        yield _key(sample) | {
            "clock": machine.clock.value,
            "cost": time.cost,
            "low": time.low,
            "high": time.high,
            "again": time.again,
            "control": time.control,
            "ended": iso(time.ended),
            "schedules": sample.schedules.hex,
            "machine_digest": machine.digest.hex,
            "machine_target": machine.target.hex,
            "machine_configuration": machine.configuration.hex,
            "version": order.version,
            "commit": order.commit,
            "code": order.code.hex,
            "model_digest": order.model.hex,
            "data_digest": order.data.hex,
            "answers": answers.digest.hex,
            "differing": answers.differing,
            "measure": answers.measure,
            "score": answers.score,
        }


def _layers(history: History) -> Iterator[Record]:
    for sample in _by_night(history, layers=True):
        for place, layer in enumerate(sample.time.layers):
            yield _key(sample) | {
                "place": place,
                "layer": layer.layer,
                "workload": layer.workload,
                "schedule": layer.schedule,
                "cost": layer.cost,
            }


def _schedules(history: History) -> Iterator[Record]:
    for digest in history.schedule_sets():
        for chosen in history.schedules(digest):
            yield {
                "schedules": digest.hex,
                "workload": chosen.workload.name,
                "workload_digest": chosen.workload.digest.hex,
                "trace": chosen.trace.digest.hex,
                "steps": str(chosen.trace),
                "point": ", ".join(f"{name}={value}" for name, value in chosen.point),
            }


def _verdicts(history: History) -> Iterator[Record]:
    for night in history.nights():
        for each in history.verdicts(night=night.name):
            yield {
                "night": each.night,
                "model": each.row.model,
                "target": each.row.target,
                "verdict": each.verdict.value,
                "change": each.change,
                "against": each.against,
                "why": each.why,
            }


def _adoptions(history: History) -> Iterator[Record]:
    for each in history.adoptions():
        yield {
            "model": each.row.model,
            "target": each.row.target,
            "night": each.night,
            "schedules": each.schedules.hex,
            "who": each.who,
            "when": iso(each.when),
        }


def _acceptances(history: History) -> Iterator[Record]:
    for each in history.acceptances():
        yield {
            "model": each.row.model,
            "target": each.row.target,
            "night": each.night,
            "who": each.who,
            "when": iso(each.when),
            "why": each.why,
        }


TABLES: Final[Mapping[str, Callable[[History], Iterator[Record]]]] = {
    "nights": _nights,
    "samples": _samples,
    "layers": _layers,
    "schedules": _schedules,
    "verdicts": _verdicts,
    "adoptions": _adoptions,
    "acceptances": _acceptances,
}
_KEY: Final = ("night", "model", "target", "pass", "machine")
_BY: Final = ("who", "when")
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "nights": ("night", "began", "ended", "why_ended", "after"),
    "samples": (
        *(*_KEY, "clock", "cost", "low", "high", "again", "control", "ended", "schedules"),
        *("machine_digest", "machine_target", "machine_configuration", "version", "commit", "code"),
        *("model_digest", "data_digest", "answers", "differing", "measure", "score"),
    ),
    "layers": (*_KEY, "place", "layer", "workload", "schedule", "cost"),
    "schedules": ("schedules", "workload", "workload_digest", "trace", "steps", "point"),
    "verdicts": ("night", "model", "target", "verdict", "change", "against", "why"),
    "adoptions": ("model", "target", "night", "schedules", *_BY),
    "acceptances": ("model", "target", "night", *_BY, "why"),
}
"""Of each table, in their order."""


def _by_night(history: History, *, layers: bool) -> Iterator[Sample]:
    for night in history.nights():
        yield from history.samples(night=night.name, layers=layers)


def _key(sample: Sample) -> dict[str, Any]:
    return {
        "night": sample.night,
        "model": sample.row.model,
        "target": sample.row.target,
        "pass": sample.part.value,
        "machine": sample.machine.name,
    }


def _written(path: Path, write: Callable[[IO[str]], None]) -> None:
    """A file that readers see old or new, never half."""
    draft = path.with_name(f".{path.name}-draft")
    try:
        try:
            with draft.open("w", encoding="utf-8", newline="") as file:
                write(file)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None
