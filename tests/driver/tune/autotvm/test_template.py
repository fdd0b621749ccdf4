"""AutoTVM's template: which of its configurations run, and what they are in our space."""

from __future__ import annotations

import csv
from itertools import product

import pytest
from kit.shared import shared_folder
from tilefarm.space import violations
from tilefarm.target import TARGETS

from compile_worker.space import generate
from driver.benchmarks.tvm_flow import OLD_FLOW
from driver.program.vta.layers import RESNET18
from driver.tune.autotvm.template import (
    TemplateChoice,
    TemplateLayer,
    breaks,
    choice_of,
    same_choices,
)

SIM = TARGETS["sim"]


def layer_named(name: str) -> TemplateLayer:
    layer = TemplateLayer.of(RESNET18[name].workload(SIM))
    assert layer is not None
    return layer


def divisors(extent: int) -> list[int]:
    return [tile for tile in range(1, extent + 1) if extent % tile == 0]


def configurations(layer: TemplateLayer) -> set[TemplateChoice]:
    """Every one that can be built and run."""
    tiles = product(*map(divisors, (*layer.output, layer.ci, layer.co)), (1, 2), (1, 2))
    chosen = (TemplateChoice(*values) for values in tiles)
    return {choice for choice in chosen if not breaks(choice, layer, SIM.geometry)}


def test_what_runs_is_what_was_measured() -> None:
    """The table has every configuration that TVM builds and the original simulator runs."""
    shared = shared_folder()
    if shared is None:
        pytest.skip("the table of the template's points is not here")
    names = tuple(TemplateChoice.__dataclass_fields__)
    measured: dict[str, set[TemplateChoice]] = {}
    with (shared / "peer" / "autotvm_space.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            choice = TemplateChoice(*(int(row[name]) for name in names))
            measured.setdefault(row["layer"], set()).add(choice)
    assert {name: configurations(layer_named(name)) for name in measured} == measured


def test_a_rule_that_is_broken_is_named() -> None:
    layer, vta = layer_named("C2"), SIM.geometry
    assert breaks(TemplateChoice(8, 56, 1, 2, 2, 1), layer, vta) == ""
    assert "divide" in breaks(TemplateChoice(9, 56, 1, 2, 2, 1), layer, vta)
    assert "threads" in breaks(TemplateChoice(7, 56, 1, 1, 2, 2), layer, vta)
    assert "input memory" in breaks(TemplateChoice(28, 56, 1, 2, 2, 1), layer, vta)
    assert "into the input" in breaks(TemplateChoice(4, 56, 2, 2, 2, 1), layer, vta)


@pytest.mark.parametrize("name", ["C2", "C4", "C11"])
def test_its_choices_are_valid_points_of_ours_and_are_found_again(name: str) -> None:
    made, layer = generate(RESNET18[name].workload(SIM), SIM), layer_named(name)
    template = OLD_FLOW[name].best
    points = same_choices(template, made, layer.extents)
    assert points
    for point in points:
        assert violations(made.space, point) == []
        assert (point["tile_oh"], point["tile_co"]) == (template.tile_h, template.tile_co)
        assert point["slots"] == 2 >= point["acc_slots"]
        again = choice_of(point, made, layer)
        assert again is not None
        assert (again.tile_h, again.tile_w, again.slots) == (template.tile_h, template.tile_w, 2)
    predicted = [point["predicted_quarter_cycles"] for point in points]
    assert predicted == sorted(predicted)
