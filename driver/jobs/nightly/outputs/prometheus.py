"""A night for Prometheus: a file that node_exporter's textfile collector reads.

The format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tilefarm.measurement import DeviceClock
from tilefarm.printable import printable

from driver.jobs.nightly.outputs.rows import NightRow, night_rows
from driver.jobs.nightly.records import Night, Verdict
from driver.jobs.nightly.zoo_history import ZooHistory

_PREFIX: Final = "tilefarm_nightly_"


def metrics_text(zoo: ZooHistory, night: Night) -> str:
    """All gauges, each with its help."""
    rows = night_rows(zoo, night)
    labels = {"zoo": zoo.zoo}
    lines = [
        *_gauge("began_seconds", "when the last night began", [(labels, night.began)]),
        *_gauge("is_ended", "1 once every row is done", [(labels, float(night.ended is not None))]),
        *_of_rows(
            "cycles", "of one batch of the whole network", rows, _cost_of(DeviceClock.CYCLES)
        ),
        *_of_rows("seconds", "the median of one batch of it", rows, _cost_of(DeviceClock.SECONDS)),
        *_of_rows(
            "change_ratio", "of it, 0.03 is three percent slower", rows, lambda r: r.judged.change
        ),
        *_of_rows("score", "of its answers", rows, _score),
        *_of_rows(
            "fails", "1 where somebody has to look", rows, lambda r: float(r.judged.verdict.fails)
        ),
        *_gauge(
            "verdict",
            "1 for the one that the row has",
            [
                (_labels(row) | {"verdict": verdict.value}, float(row.judged.verdict is verdict))
                for row in rows
                for verdict in Verdict
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def _of_rows(
    name: str, words: str, rows: Sequence[NightRow], value: Callable[[NightRow], float | None]
) -> Iterator[str]:
    found = [(_labels(row), each) for row in rows if (each := value(row)) is not None]
    yield from _gauge(name, words, found)


def _gauge(name: str, words: str, values: Sequence[tuple[dict[str, str], float]]) -> Iterator[str]:
    if values:
        yield f"# HELP {_PREFIX}{name} {words}"
        yield f"# TYPE {_PREFIX}{name} gauge"
    for labels, value in values:
        said = ",".join(f'{key}="{_escaped(word)}"' for key, word in labels.items())
        yield f"{_PREFIX}{name}{{{said}}} {value!r}"


def _labels(row: NightRow) -> dict[str, str]:
    return {"model": row.history.row.model, "target": row.history.row.target}


def _escaped(words: str) -> str:
    return printable(words).replace("\\", "\\\\").replace('"', '\\"')


def _cost_of(clock: DeviceClock) -> Callable[[NightRow], float | None]:
    def cost(row: NightRow) -> float | None:
        is_so = row.sample is not None and row.sample.machine.clock is clock
        return row.sample.time.cost if row.sample and is_so else None

    return cost


def _score(row: NightRow) -> float | None:
    return row.sample.answers.score if row.sample else None
