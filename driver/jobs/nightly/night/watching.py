"""What a night says as it goes on: lines for people, or JSON lines for machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final, Protocol, TextIO

from tilefarm.clock import Clock
from tilefarm.plural import plural
from tilefarm.printable import printable

from driver.jobs.nightly.night.events import (
    Annotation,
    NightBegan,
    NightEvent,
    NightNotice,
    RowBegan,
    RowDone,
    RowLeft,
)
from driver.jobs.nightly.records import Judged, Pass, Sample
from driver.jobs.nightly.words import SIGNS, change_text, sample_text, verdict_words
from driver.report.terminal.text_table import text_table

_TITLES: Final = ("row", "verdict", "change", "took")


class NightView(Protocol):
    """Who is told."""

    def __call__(self, event: NightEvent) -> None: ...

    def end(self, exit_code: int, /) -> None:
        """The night is over, or left."""
        ...


class NightLines:
    """For people: a line as a row begins and as it ends, and a table in the end."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._began = clock.seconds()
        self._rows = 0
        self._done: list[RowDone] = []

    def __call__(self, event: NightEvent) -> None:
        match event:
            case NightBegan(night=night, rows=rows, done=done):
                self._rows = rows + done
                earlier = f", {done} done before" if done else ""
                self._say(f"night {night}: {plural(self._rows, 'row')}{earlier}")
            case RowBegan(row=row, number=number):
                self._say(f"{row}: begins, number {number} of {self._rows}")
            case RowDone() as done:
                self._done.append(done)
                self._say(_line(done))
            case RowLeft(row=row, why=why):
                self._say(f"{row}: left as it is: {why}")
            case NightNotice(text=text):
                self._say(text)
            case Annotation(text=text):
                print(text, file=self._stream, flush=True)

    def end(self, _exit_code: int) -> None:
        """The table."""
        for line in _table(self._done):
            print(line, file=self._stream)

    def _say(self, text: str) -> None:
        seconds = self._clock.seconds() - self._began
        print(f"{seconds:7.1f} s  {printable(_plain(text))}", file=self._stream, flush=True)


class NightJson:
    """For machines: an event a line, the last one with the exit code."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: NightEvent) -> None:
        match event:
            case RowDone(judged=judged, samples=samples, seconds=seconds):
                found = {sample.part.value: _costs(sample) for sample in samples}
                self._write("row_done", **_judged(judged), seconds=seconds, samples=found)
            case NightBegan():
                self._write("night_began", **asdict(event))
            case RowBegan():
                self._write("row_began", **asdict(event.row), number=event.number)
            case RowLeft():
                self._write("row_left", **asdict(event.row), why=event.why)
            case NightNotice() | Annotation():
                self._write("notice", text=event.text)

    def end(self, exit_code: int) -> None:
        """The last line."""
        self._write("night_ended", exit_code=exit_code)

    def _write(self, event: str, **values: Any) -> None:
        print(json.dumps({"event": event} | values), file=self._stream, flush=True)


def _judged(judged: Judged) -> dict[str, Any]:
    row = asdict(judged.row)
    return asdict(judged) | {"row": str(judged.row)} | row | {"fails": judged.verdict.fails}


def _costs(sample: Sample) -> dict[str, Any]:
    time = sample.time
    return {
        "clock": sample.machine.clock.value,
        "cost": time.cost,
        "low": time.low,
        "high": time.high,
        "again": time.again,
        "schedules": sample.schedules.hex,
    }


def _line(done: RowDone) -> str:
    judged = done.judged
    words = [f"{judged.row}: {verdict_words(judged.verdict)} {change_text(judged)}".rstrip()]
    words += [sample_text(sample) for sample in done.samples[:1]]
    words += [f"found {sample_text(s)}" for s in done.samples[1:] if s.part is Pass.FOUND]
    if judged.verdict.fails:
        words.append(judged.why)
    if done.seconds:
        words.append(f"in {done.seconds:.0f} s")
    return ", ".join(words)


def _table(rows: Sequence[RowDone]) -> Iterator[str]:
    """What is not as it was, those that matter most first; and how many of each kind."""
    order = list(SIGNS)
    told = sorted(rows, key=lambda row: order.index(row.judged.verdict))
    if told:
        yield ""
        yield from text_table(_TITLES, [_cells(row) for row in told])
        yield ""
    for row in told:
        if row.judged.verdict.fails:
            yield printable(f"{row.judged.row}: {row.judged.why}")
    counts = Counter(row.judged.verdict for row in rows)
    yield ", ".join(f"{counts[v]} {verdict_words(v)}" for v in SIGNS if counts[v]) or "no rows"


def _cells(row: RowDone) -> tuple[str, ...]:
    judged = row.judged
    took = sample_text(row.samples[0]) if row.samples else ""
    verdict = f"{SIGNS[judged.verdict]} {verdict_words(judged.verdict)}"
    return printable(str(judged.row)), verdict, change_text(judged), _plain(took)


def _plain(text: str) -> str:
    """With spaces that every terminal has."""
    return text.replace("\N{NARROW NO-BREAK SPACE}", " ")
