"""The old flow's figures are those of its table."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.shared import shared_folder
from tilefarm.errors import DataError

from driver.benchmarks.tvm_flow import OLD_FLOW, TemplatePoint, read_template

HEAD = "layer,tile_h,tile_w,tile_ci,tile_co,oc_nthread,h_nthread,cycles\n"
SUM = 2_840_113
"""Of the best points of the ten layers, as published with the table."""


def test_the_figures_add_up() -> None:
    assert sum(old.best.cycles for old in OLD_FLOW.values()) == SUM
    assert all(old.best.cycles < old.with_bias for old in OLD_FLOW.values())


def test_the_figures_are_those_of_the_table() -> None:
    shared = shared_folder()
    if shared is None:
        pytest.skip("the table of the old flow's points is not here")
    table = read_template(shared / "peer" / "autotvm_space.csv")
    assert {name: old.best.cycles for name, old in OLD_FLOW.items()} == {
        name: point.cycles for name, point in table.items()
    }


def test_a_table_gives_the_best_row_of_a_layer(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(f"{HEAD}C2,8,56,1,2,2,1,500\nC2,7,56,1,2,1,2,400\n")
    assert read_template(file) == {"C2": TemplatePoint(7, 56, 1, 2, 1, 2, 400)}


@pytest.mark.parametrize(
    ("text", "why"),
    [(HEAD, "no rows"), ("layer,cycles\nC2,1\n", "not a table of"), (f"{HEAD}C2,x", "not a table")],
)
def test_other_tables_are_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "table.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=why):
        read_template(file)


def test_an_absent_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_template(tmp_path / "none.csv")
