"""Reports of a processor: speeds and shares of its peak, and no word of an accelerator."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from kit.reports.profiles import timed_profile
from kit.reports.summaries import a_summary, by_the_clock
from rich.console import Console

from driver.report.page import page
from driver.report.summary import RunSummary, brief
from driver.report.terminal.tables import workload_table


def of_a_processor(peak: float | None = 10e9) -> RunSummary:
    """Its first workload takes 300 us for 589,824 products."""
    summary = by_the_clock(a_summary())
    profile = replace(timed_profile(), peak=peak)
    run = replace(summary.run, has_accelerator=False)
    return replace(summary, run=run, profile=profile, timeline=None)


def told(summary: RunSummary) -> str:
    text = io.StringIO()
    Console(file=text, width=140).print(workload_table(summary, 140))
    return text.getvalue()


def test_a_workload_has_its_speed_and_share_of_the_peak() -> None:
    summary = of_a_processor()
    (first, *_) = summary.workloads
    assert first.speed is not None
    speed = f"{1e-9 * first.speed:.1f}"
    row = next(line for line in told(summary).splitlines() if first.name in line)
    assert f" {speed} " in row
    assert f"{100 * first.speed / 10e9:.1f} %" in row


def test_a_processor_is_no_accelerator() -> None:
    summary = of_a_processor()
    for text in (told(summary), page(summary)):
        assert "workloads" in text.lower()
        assert "workloads of the accelerator" not in text.lower()
        assert "ideal" not in text
    assert "workloads of the accelerator" in told(a_summary())


def test_without_a_peak_there_is_no_share() -> None:
    assert "%" not in told(of_a_processor(peak=None))


def test_the_summary_has_the_layers_times() -> None:
    profile = brief(of_a_processor())["profile"]
    assert profile["peak_macs_per_second"] == 10e9
    assert [row["median_seconds"] for row in profile["layers"]] == pytest.approx([1e-6, 1e-5, 3e-5])
    assert brief(a_summary())["profile"] is None
