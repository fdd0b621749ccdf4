"""Tables of the page: numbers that people compare, with bars where a bar says it faster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilefarm.plural import form, plural
from tilefarm.printable import page_text as escape

from driver.network import CYCLES_ARE, RemedyPlan, Unit, value_text
from driver.report.comparison import Comparison
from driver.report.cost import Cost, gain, microseconds
from driver.report.summary import Accuracy, LayerRow, RunSummary, SessionRow, WorkloadRow


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table of markup cells; all but the first `words` columns are numbers."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{'' if at < words else ' class=n'}>{cell}</td>" for at, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f"<div class=scroll><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def workload_table(summary: RunSummary) -> str:
    """A row per distinct workload that was searched."""
    workloads = summary.workloads
    if not summary.run.has_accelerator:
        names = (
            "workload", "count", "MACs", "untuned", "best", "gain", "GMAC/s", "of peak",
            "trials", "failures",
        )  # fmt: skip
        return table(names, (_processor_row(row, summary.peak) for row in workloads))
    head = (
        "workload", "count", "MACs", "ideal cycles", "untuned", "best", "gain",
        "utilisation", "trials", "failures",
    )  # fmt: skip
    return table(head, map(_workload_row, workloads))


def _workload_name(w: WorkloadRow) -> str:
    tiles = ", ".join(f"{name}={value}" for name, value in w.best_point)
    return f'<span title="{escape(tiles)}">{escape(w.name)}</span><small>{escape(w.shape)}</small>'


def _failures(w: WorkloadRow) -> str:
    return escape(", ".join(f"{count} {status}" for status, count in w.failures) or "0")


def _processor_row(w: WorkloadRow, peak: float | None) -> tuple[str, ...]:
    return (
        _workload_name(w),
        str(w.count),
        count(w.macs),
        taken(w.default),
        f"<b>{taken(w.best)}</b>",
        times(w.speedup),
        gmacs(w.speed),
        share_bar(w.speed / peak if w.speed and peak else None),
        str(w.trials),
        _failures(w),
    )


def _workload_row(w: WorkloadRow) -> tuple[str, ...]:
    return (
        _workload_name(w),
        str(w.count),
        count(w.macs),
        count(w.ideal_cycles),
        taken(w.default),
        f"<b>{taken(w.best)}</b>",
        times(w.speedup),
        share_bar(w.utilisation),
        str(w.trials),
        _failures(w),
    )


def layer_table(layers: Sequence[LayerRow]) -> str:
    """A row per kernel call of the network, in order."""
    head = ("#", "layer", "operator", "runs on", "shape", "MACs", "takes", "gain", "output bytes")
    rows = (_layer_row(number, layer) for number, layer in enumerate(layers, 1))
    return table(head, rows, words=5)


def _layer_row(number: int, layer: LayerRow) -> tuple[str, ...]:
    place, why = escape(layer.place), escape(layer.why)
    return (
        str(number),
        escape(layer.name),
        escape(layer.operator),
        f'<span class="{place}" title="{why}">{place}</span>',
        escape(layer.shape),
        count(layer.macs),
        taken(layer.best),
        times(layer.speedup),
        count(layer.output_nbytes),
    )


def accuracy_table(accuracy: Accuracy) -> str:
    """How the three executions of the network did on the evaluation data, measure by measure."""
    cells = (
        (
            escape(row.title),
            *(_measured(row.unit, each) for each in (row.floats, row.reference, row.device)),
        )
        for row in accuracy.compared
    )
    words = f"{plural(accuracy.images, 'sample')}, judged by {accuracy.kind}"
    return (
        f"<p class=sub>{words}</p>"
        + table(("measure", "float graph", "integer reference", "device"), cells)
        + f"<p>{differing(accuracy)}.</p>"
        + _promise(accuracy)
    )


def _promise(accuracy: Accuracy) -> str:
    """Whether it is kept, if anything says so."""
    found = accuracy.judgement
    if found is None:
        return ""
    return f"<p{'' if found.is_kept else ' class=bad'}>{escape(found.verdict().capitalize())}.</p>"


def plan_table(plans: Sequence[RemedyPlan]) -> str:
    """Plans that were tried, the cheapest first: what they cost, and what is lost.

    The names of the layers, which may be dozens, are shown under the pointer.
    """
    least = min((plan.cycles for plan in plans if not plan.remedies), default=0)
    most = max((plan.cycles for plan in plans), default=0)
    rows = (
        (
            f'<span title="{escape(plan.words())}">{escape(plan.counted())}</span>',
            count(plan.macs),
            bar(plan.cycles / most if most else 0.0, count(plan.cycles)),
            times(plan.cycles / least if least else None),
            CYCLES_ARE[plan.basis],
            f"{plan.points:.2f}",
        )
        for plan in sorted(plans, key=lambda plan: (plan.cycles, plan.points))
    )
    head = (
        "plan",
        "MACs in float",
        "cycles",
        "",
        "of the accelerator",
        "points lost",
    )
    return table(head, rows)


def _measured(unit: Unit, value: float | None) -> str:
    """A value, with a bar where it is a share."""
    return share_bar(value / 100) if unit == "%" and value is not None else value_text(unit, value)


def differing(accuracy: Accuracy) -> str:
    """The sentence that matters most: does the device compute what the reference says?"""
    if not accuracy.differing:
        samples = plural(accuracy.images, "sample")
        return f"The device equals the integer reference bit for bit on all {samples}"
    return f"<strong class=bad>{_differ(accuracy)}</strong>"


def _differ(accuracy: Accuracy) -> str:
    samples = plural(accuracy.images, "sample")
    return f"{accuracy.differing} of {samples} {form(accuracy.differing, 'differs', 'differ')}"


def comparison_section(comparison: Comparison) -> str:
    """The program beside a library, and what the library's own layers take."""
    rows = [("this program", microseconds(comparison.seconds), "")]
    rows += [
        (
            escape(f"{comparison.library}, {each.kind}"),
            microseconds(each.seconds),
            times(gain(each.seconds, comparison.seconds)),
        )
        for each in comparison.times
    ]
    layers = (
        (escape(each.name), escape(each.operator), microseconds(each.seconds))
        for each in comparison.layers
    )
    return table(("whole network, in turns", "least", "of ours"), rows) + table(
        ("its layer", "operator", "least"), layers, words=2
    )


def failure_table(summary: RunSummary) -> str:
    """Trials that did not end well, by kind, with an example."""
    kinds: dict[str, list[str]] = {}
    for trial in summary.trials:
        if trial.status != "ok":
            kinds.setdefault(trial.status, []).append(trial.why)
    if not kinds:
        return f"<p>None: all {plural(len(summary.trials), 'trial')} ended well.</p>"
    rows = ((escape(kind), escape(whys[0]), str(len(whys))) for kind, whys in sorted(kinds.items()))
    return table(("status", "for example", "trials"), rows, words=2)


def session_table(sessions: Sequence[SessionRow]) -> str:
    """A row per search: what each session of the folder measured, and how it ended."""
    rows = (
        (
            escape(each.began),
            escape(each.outcome or "killed, or going on"),
            "–" if each.seconds is None else f"{each.seconds:.1f}",
            str(each.trials),
        )
        for each in sessions
    )
    return table(("search began", "ended", "seconds", "trials"), rows, words=2)


def count(value: int | None) -> str:
    """1234567 -> 1 234 567 with thin spaces; a dash where it is unknown."""
    return "–" if value is None else f"{value:,}".replace(",", "\u202f")


def taken(cost: Cost) -> str:
    """What kernels take: cycles, or microseconds where none are counted."""
    return count(cost.cycles) if cost.seconds is None else microseconds(cost.seconds)


def gmacs(per_second: float | None) -> str:
    """Multiply-accumulates a second, in thousand millions of them."""
    return "–" if per_second is None else f"{1e-9 * per_second:.1f}"


def times(value: float | None) -> str:
    """A ratio for people."""
    return "–" if value is None else f"{value:.2f}×"


def share_bar(value: float | None) -> str:
    """A share of 1 as a bar with its percentage."""
    return "–" if value is None else bar(value, f"{100 * value:.1f} %")


def bar(share: float, text: str) -> str:
    """A bar that is filled to a share of 1, with what it stands for."""
    width = 100 * min(max(share, 0.0), 1.0)
    return f'<span class=bar><i style="width:{width:.1f}%"></i></span> {text}'
