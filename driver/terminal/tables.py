"""The two tables at the end of a run, for a terminal."""

from __future__ import annotations

from rich.table import Table

from driver.report.summary import Accuracy, RunSummary, WorkloadRow


def workload_table(summary: RunSummary) -> Table:
    """A row per workload of the accelerator, and their sum over the network."""
    table = Table(title="workloads of the accelerator", title_justify="left", box=None)
    table.add_column("workload", overflow="ellipsis", no_wrap=True)
    for title in ("count", "MACs", "ideal", "default", "best", "gain", "of ideal", "trials"):
        table.add_column(title, justify="right")
    table.add_column("failed")
    for row in summary.workloads:
        table.add_row(*_cells(row))
    table.add_section()
    table.add_row(
        "the network",
        str(sum(w.count for w in summary.workloads)),
        number(sum(w.count * w.macs for w in summary.workloads)),
        number(sum(w.count * w.ideal_cycles for w in summary.workloads)),
        number(summary.default_cycles),
        number(summary.best_cycles),
        ratio(summary.speedup),
        share(_utilisation(summary)),
        str(sum(w.trials for w in summary.workloads)),
    )
    return table


def accuracy_table(accuracy: Accuracy) -> Table:
    """Float, reference and device side by side, and how many images differ."""
    table = Table(title="accuracy", title_justify="left", box=None)
    for title in ("images", "float", "integer reference", "device", "differing from reference"):
        table.add_column(title, justify="right")
    counts = (accuracy.float_correct, accuracy.reference_correct, accuracy.device_correct)
    table.add_row(
        str(accuracy.images),
        *(share(accuracy.share(count)) for count in counts),
        str(accuracy.differing),
    )
    return table


def number(value: int | None) -> str:
    """Digits in groups of three; a dash for nothing."""
    return "-" if value is None else f"{value:,}".replace(",", " ")


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
        number(row.default_cycles),
        number(row.best_cycles),
        ratio(row.speedup),
        share(row.utilisation),
        str(row.trials),
        ", ".join(f"{count} {status}" for status, count in row.failures),
    )


def _utilisation(summary: RunSummary) -> float | None:
    ideal = sum(w.count * w.ideal_cycles for w in summary.workloads)
    return ideal / summary.best_cycles if summary.best_cycles else None
