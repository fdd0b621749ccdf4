"""The page: one HTML file without scripts, fonts or anything else from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tilefarm.printable import page_text as escape

from driver.atomic_write import write_atomically
from driver.network import value_text
from driver.report.arena_chart import arena_chart
from driver.report.cost import microseconds
from driver.report.gantt_chart import gantt_chart
from driver.report.html import html_page
from driver.report.noise_chart import noise_chart
from driver.report.plan_chart import plan_chart
from driver.report.plans_section import plans_section
from driver.report.profile_chart import profile_section
from driver.report.progress_chart import progress_chart
from driver.report.space_chart import space_section
from driver.report.summary import RunSummary
from driver.report.tables import (
    accuracy_table,
    comparison_section,
    count,
    failure_table,
    layer_table,
    plan_table,
    session_table,
    table,
    taken,
    times,
    workload_table,
)
from driver.report.timeline_chart import timeline_chart

_TRIAL_KINDS: Final = ("propose", "compile", "transfer", "run")


def write_report(summary: RunSummary, path: Path) -> None:
    """Write the report of a run to `path`, whole or not at all.

    Raises:
        OutputError: it cannot be written.
    """
    write_atomically(path, page(summary).encode())


def page(summary: RunSummary) -> str:
    """The whole report. Every name in it is escaped: models are untrusted text."""
    title = escape(summary.run.title)
    sections = "".join(f"<h2>{escape(name)}</h2>{body}" for name, body in _sections(summary))
    return html_page(
        title,
        f"<h1>{title}</h1><p class=sub>{_subtitle(summary)}</p>{_tiles(summary)}{sections}",
    )


def _sections(summary: RunSummary) -> list[tuple[str, str]]:
    sections = [
        ("Best so far", progress_chart(summary)),
    ]
    if summary.run.has_accelerator:
        sections.append(("Workloads of the accelerator", workload_table(summary)))
    elif summary.workloads:
        sections.append(("Workloads", workload_table(summary)))
    if summary.spaces:
        sections.append(("Spaces, and what was predicted", space_section(summary.spaces)))
    if summary.accuracy:
        sections.append(("Accuracy", accuracy_table(summary.accuracy)))
    if summary.plans and summary.accuracy and summary.accuracy.judgement:
        limit = summary.accuracy.judgement.promise.limit
        words = (
            "<p class=sub>every plan that was tried: cycles of the accelerator are measured, with"
            " schedules that are predicted to be best, or the least that it needs; those of the"
            " processor are an estimate</p>"
        )
        body = words + plan_chart(summary.plans, limit) + plan_table(summary.plans)
        sections.append(("Accuracy against cycles", body))
    if summary.noise:
        words = "<p class=sub>with all layers in integers, as they were quantized first</p>"
        sections.append(("Noise, and where it comes from", words + noise_chart(summary.noise)))
    sections.append(("Workers and devices", gantt_chart(summary.spans)))
    if summary.profile:
        sections.append(("The program, layer by layer", profile_section(summary.profile)))
    if summary.comparison:
        sections.append(("Beside another library", comparison_section(summary.comparison)))
    if summary.timeline:
        words = (
            f"<p class=sub>{escape(summary.timeline.layer)}: "
            f"{count(summary.timeline.cycles)} cycles ({escape(summary.timeline.workload)})</p>"
        )
        sections.append(
            ("The slowest kernel, cycle by cycle", words + timeline_chart(summary.timeline))
        )
    if summary.arena:
        plan = summary.arena
        moved = f"; in the given order of layers {count(plan.given_nbytes)}"
        words = (
            f"<p class=sub>{count(plan.nbytes)} bytes; no plan can need less than "
            f"{count(plan.bound_nbytes)}{moved if plan.given_nbytes != plan.nbytes else ''}"
            f"; without sharing {count(plan.unshared_nbytes)}</p>"
        )
        sections.append(("Memory of intermediate tensors", words + arena_chart(plan)))
    if summary.memory:
        sections.append(("Engines and memory, as planned", plans_section(summary.memory)))
    sections.append(("Layers", layer_table(summary.layers)))
    sections.append(("Failed trials", failure_table(summary)))
    if summary.sessions:
        sections.append(("Sessions", session_table(summary.sessions)))
    rows = [(escape(name), escape(value)) for name, value in _facts(summary)]
    sections.append(("About this run", table(("fact", "value"), rows, words=2)))
    return sections


def _subtitle(summary: RunSummary) -> str:
    stopped = " · stopped before its budget was spent" if summary.interrupted else ""
    return escape(f"tilefarm · target {summary.run.target} · {summary.run.began}{stopped}")


def _tiles(summary: RunSummary) -> str:
    tiles = [
        (times(summary.speedup), "faster than untuned"),
        _kernels(summary),
        (str(len(summary.trials)), "trials"),
    ]
    if summary.network_seconds is not None:
        tiles.insert(2, (microseconds(summary.network_seconds), "the whole network"))
    if summary.network_cycles is not None:
        tiles.insert(2, (count(summary.network_cycles), "cycles, whole network"))
    if summary.accuracy:
        first = summary.accuracy.compared[0]
        tiles.append((value_text(first.unit, first.device), f"{first.title}, on the device"))
        tiles.append((str(summary.accuracy.differing), "samples differ from the reference"))
    if summary.session.trials_per_second is not None:
        tiles.append((f"{summary.session.trials_per_second:.1f}", "trials a second"))
    cells = "".join(f"<div class=tile><b>{b}</b><span>{escape(s)}</span></div>" for b, s in tiles)
    remark = f"<p class=sub>{escape(summary.remark)}</p>" if summary.remark else ""
    return f"<div class=tiles>{cells}</div>{remark}"


def _kernels(summary: RunSummary) -> tuple[str, str]:
    best = summary.best
    return taken(best), "cycles in kernels" if best.seconds is None else "in kernels"


def _spent(summary: RunSummary, kind: str) -> float:
    """Seconds of a kind of work, over the trials of all sessions."""
    return sum(s.end_seconds - s.begin_seconds for s in summary.spans if s.kind == kind)


def _facts(summary: RunSummary) -> list[tuple[str, str]]:
    run, session = summary.run, summary.session
    facts = [
        ("model digest", run.model_digest),
        ("target digest", run.target_digest),
        ("proposer", run.proposer),
        ("seed", str(run.seed)),
        ("seconds in all, this session", f"{session.total_seconds:.1f}"),
        ("seconds of search, this session", f"{session.search_seconds:.1f}"),
    ]
    if session.first_measured_seconds is not None:
        facts.append(
            ("seconds to the first measured kernel", f"{session.first_measured_seconds:.1f}")
        )
    facts.append(
        (
            "seconds of all trials by stage (they overlap)",
            ", ".join(f"{kind} {_spent(summary, kind):.1f}" for kind in _TRIAL_KINDS),
        )
    )
    return facts + list(summary.facts)
