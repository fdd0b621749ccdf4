"""Fixed kernels and networks compile to the same bytes as when a person last looked.

A change that means to leave artifacts alone passes without touching the table; one that means to
change them writes it anew, and the difference names every kernel that it reached.
"""

from __future__ import annotations

import pytest
from kit.golden import Golden

from .unchanged import Row, Table, kernel_cases, kernel_rows, network_row, networks


def table(golden: Golden) -> Table:
    return Table(golden.folder / "rows.json", golden.update)


def compare_kernels(golden: Golden, *, always: bool) -> None:
    kept = table(golden)
    known = kept.read()
    rows: dict[str, Row] = {}
    for case in kernel_cases():
        if case.always is always:
            rows |= kernel_rows(case, known, anew=golden.update)
    kept.compare(rows, golden.command)


def test_kernels_of_every_operator(golden: Golden) -> None:
    compare_kernels(golden, always=True)


@pytest.mark.slow
def test_kernels_of_every_design_and_host(golden: Golden) -> None:
    compare_kernels(golden, always=False)


def test_networks(golden: Golden) -> None:
    rows = {name: network_row(graph, target) for name, (graph, target) in networks().items()}
    table(golden).compare(rows, golden.command)


def test_no_row_is_left_over(golden: Golden) -> None:
    names = {case.name for case in kernel_cases()} | set(networks())
    assert {name.rsplit(" #")[0] for name in table(golden).read()} == names
