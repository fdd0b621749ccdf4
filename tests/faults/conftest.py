"""The fault matrix as a table: a line for each test of a row, with its bound and what it took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.built import no_c_kernels, require
from kit.farm.real_farm import RealFarm

from .fault_rows import ROWS, Stopwatch, row_number

_MEASURED = "fault seconds"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here, files = Path(__file__).parent, {item.path for item in items}
    rows = {path for path in files if path.parent == here and row_number(path) is not None}
    for item in items:
        if item.path in rows:
            item.add_marker(pytest.mark.faults)


@pytest.fixture
def stopwatch(request: pytest.FixtureRequest) -> Stopwatch:
    """Measures how long the farm takes to deal with the row's fault."""
    number = row_number(request.path)
    assert number is not None, "only tests of a row are measured"
    watch = Stopwatch(ROWS[number])
    request.node.user_properties.append((_MEASURED, watch.measured))
    return watch


@pytest.fixture
def real_farm(tmp_path: Path) -> Iterator[RealFarm]:
    """A farm of real processes."""
    require(no_c_kernels)
    with RealFarm(tmp_path) as farm:
        yield farm


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = sorted(
        line
        for outcome in ("passed", "failed", "skipped", "error")
        for report in terminalreporter.getreports(outcome)
        if isinstance(report, pytest.TestReport) and (line := _line(report, outcome))
    )
    if lines:
        terminalreporter.section("fault matrix")
        head = f"{'row':>3}  {'fault':44} {'bound, s':>8} {'took, s':>8}  {'verdict':7}  test"
        for line in [head, *lines]:
            terminalreporter.write_line(line)


def _line(report: pytest.TestReport, outcome: str) -> str:
    """A test's line in the table; empty for what is no row's test."""
    file, _, test = report.nodeid.partition("::")
    number = row_number(Path(file))
    if number is None:
        return ""
    row = ROWS[number]
    properties: dict[str, Any] = dict(report.user_properties)
    took = max(properties.get(_MEASURED, []), default=None)
    verdict = outcome
    if outcome == "passed" and took is not None and row.seconds is not None:
        verdict = "in time" if took <= row.seconds else "slow"
    bound = "-" if row.seconds is None else f"{row.seconds:g}"
    shown = "-" if took is None else f"{took:.3f}"
    return f"{number:3}  {row.fault:44} {bound:>8} {shown:>8}  {verdict:7}  {test}"
