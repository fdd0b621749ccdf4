"""The tables of a run for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from rich.table import Table
from rich.text import Text
from tilefarm.plural import form, plural
from tilefarm.printable import printable

from driver.network import value_text
from driver.report.cost import Cost, microseconds
from driver.report.summary import Accuracy, RunSummary, WorkloadRow

_TITLES: Final = (
    "workload",
    "count",
    "MACs",
    "ideal",
    "default",
    "best",
    "gain",
    "of ideal",
    "trials",
    "failed",
)
_PROCESSOR_TITLES: Final = (
    "workload",
    "count",
    "MACs",
    "default",
    "best",
    "gain",
    "GMAC/s",
    "of peak",
    "trials",
    "failed",
)
"""Of a processor no cycles are counted: it has a speed, and a peak that was measured."""
_GAP: Final = 2
"""Characters around a cell."""


def workload_table(summary: RunSummary, width: int) -> Table:
    """A row per workload of the accelerator, and their sum over the network.

    Where the terminal is narrow, columns that the report has as well are left out.
    """
    on_accelerator = summary.run.has_accelerator
    if on_accelerator:
        titles, rows = _TITLES, [*map(_cells, summary.workloads), _sums(summary)]
    else:
        titles = _PROCESSOR_TITLES
        rows = [_processor_cells(row, summary.peak) for row in summary.workloads]
        rows.append(_processor_sums(summary))
    table = fitting_table(titles, rows, width=width, spare=("MACs", "ideal", "count"))
    table.title = "workloads of the accelerator" if on_accelerator else "workloads"
    table.title_justify = "left"
    return table


def fitting_table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int,
    spare: Sequence[str] = (),
) -> Table:
    """A table whose numbers are whole: names, the first column, are cut off where it is narrow.

    Columns in `spare` are left out, one after the other, while names do not fit.
    """
    rows = [tuple(map(printable, row)) for row in rows]
    widths = {
        title: max(map(len, (title, *(row[n] for row in rows)))) for n, title in enumerate(titles)
    }
    for title in spare:
        if sum(widths.values()) + _GAP * len(widths) <= width:
            break
        del widths[title]
    room = width - sum([*widths.values()][1:]) - _GAP * len(widths)
    table = Table(box=None)
    for title, longest in widths.items():
        if title == titles[0]:
            most = max(room, len(title))
            table.add_column(title, overflow="ellipsis", no_wrap=True, max_width=most)
        else:
            side: Literal["left", "right"] = "left" if title == "failed" else "right"
            table.add_column(title, justify=side, no_wrap=True, min_width=longest)
    shown = [titles.index(title) for title in widths]
    for row in rows:
        # Text: names of others are no markup.
        table.add_row(*(Text(row[n]) for n in shown))
    return table


def accuracy_table(accuracy: Accuracy) -> Table:
    """Float, reference and device side by side, a row a measure, and how many samples differ."""
    differ = form(accuracy.differing, "differs", "differ")
    samples = plural(accuracy.images, "sample")
    table = Table(
        title=f"accuracy, {samples}, {accuracy.differing} {differ} from the reference",
        title_justify="left",
        box=None,
    )
    table.add_column("measure", no_wrap=True)
    for title in ("float", "integer reference", "device"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in accuracy.compared:
        values = (row.floats, row.reference, row.device)
        table.add_row(row.title, *(value_text(row.unit, each) for each in values))
    return table


def number(value: int | None) -> str:
    """Digits in groups of three; a dash for nothing."""
    return "-" if value is None else f"{value:,}".replace(",", " ")


def taken(cost: Cost) -> str:
    """What kernels take: cycles, or microseconds where none are counted."""
    return number(cost.cycles) if cost.seconds is None else microseconds(cost.seconds)


def gmacs(per_second: float | None) -> str:
    """Multiply-accumulates a second, in thousand millions of them."""
    return "-" if per_second is None else f"{1e-9 * per_second:.1f}"


def ratio(value: float | None) -> str:
    """A factor with two digits."""
    return "-" if value is None else f"{value:.2f}x"


def share(value: float | None) -> str:
    """A share as per cent with one digit."""
    return "-" if value is None else f"{100 * value:.1f} %"


def _cells(row: WorkloadRow) -> tuple[str, ...]:
    return (
        row.name,
        str(row.count),
        number(row.macs),
        number(row.ideal_cycles),
        taken(row.default),
        taken(row.best),
        ratio(row.speedup),
        share(row.utilisation),
        str(row.trials),
        ", ".join(f"{count} {status}" for status, count in row.failures),
    )


def _sums(summary: RunSummary) -> tuple[str, ...]:
    return (
        "the network",
        str(sum(w.count for w in summary.workloads)),
        number(sum(w.count * w.macs for w in summary.workloads)),
        number(sum(w.count * w.ideal_cycles for w in summary.workloads)),
        taken(summary.default),
        taken(summary.best),
        ratio(summary.speedup),
        share(_utilisation(summary)),
        str(sum(w.trials for w in summary.workloads)),
        "",
    )


def _processor_cells(row: WorkloadRow, peak: float | None) -> tuple[str, ...]:
    return (
        row.name,
        str(row.count),
        number(row.macs),
        taken(row.default),
        taken(row.best),
        ratio(row.speedup),
        gmacs(row.speed),
        share(row.speed / peak if row.speed and peak else None),
        str(row.trials),
        ", ".join(f"{count} {status}" for status, count in row.failures),
    )


def _processor_sums(summary: RunSummary) -> tuple[str, ...]:
    macs = sum(w.count * w.macs for w in summary.workloads)
    speed = macs / summary.best.seconds if summary.best.seconds else None
    return (
        "the network",
        str(sum(w.count for w in summary.workloads)),
        number(macs),
        taken(summary.default),
        taken(summary.best),
        ratio(summary.speedup),
        gmacs(speed),
        share(speed / summary.peak if speed and summary.peak else None),
        str(sum(w.trials for w in summary.workloads)),
        "",
    )


def _utilisation(summary: RunSummary) -> float | None:
    ideal = sum(w.count * w.ideal_cycles for w in summary.workloads)
    return ideal / summary.best.cycles if summary.best.cycles else None
