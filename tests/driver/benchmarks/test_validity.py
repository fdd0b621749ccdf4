"""The harness of valid and forbidden points, on one quick layer; marked slow, on all kinds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tilefarm.measurement import Status
from tilefarm.space import violations
from tilefarm.target import TARGETS

from compile_worker.space import generate, has_space
from driver import cli
from driver.benchmarks.forbidden import forbidden_points
from driver.benchmarks.sandboxed import ScheduleResult
from driver.benchmarks.validity import LayerTask, check_layer
from driver.benchmarks.validity_figures import (
    LayerValidity,
    SpaceValidity,
    WrongPoint,
    document,
    tables,
)
from driver.benchmarks.workloads import workloads
from tuner.sampler import Sampler

SIM = TARGETS["sim"]
KINDS = workloads(SIM)


def task(name: str, points: int, forbidden: int) -> LayerTask:
    return LayerTask(
        name=name, workload=KINDS[name], target=SIM, points=points, forbidden=forbidden, seed=0
    )


def test_forbidden_points_break_one_limit_each() -> None:
    made = generate(KINDS["C10"], SIM)
    rng = np.random.default_rng(3)
    valid = Sampler(made.space).sample(10, rng)
    found = forbidden_points(made, valid, rng, 20)
    assert len(found) == 20
    for name, point in found:
        assert violations(made.space, point) == [name]
        assert not name.startswith("canonical")


def test_a_layer_keeps_its_promise() -> None:
    found = check_layer(task("conv prime", 4, 4))
    assert (found.valid, found.wrong, len(found.forbidden)) == (4, (), 4)
    assert set(found.refused) <= set(found.forbidden)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_keeps_its_promise(name: str) -> None:
    if not has_space(KINDS[name], SIM):
        pytest.skip("there is nothing to choose")
    found = check_layer(task(name, 6, 6))
    assert found.wrong == ()
    assert len(found.working) <= 1


def wrong() -> WrongPoint:
    return WrongPoint(
        point={"tile": 2}, verdict=ScheduleResult(status=Status.RUN_CRASH, why="it fell\nover")
    )


def test_what_is_not_as_promised_is_told() -> None:
    good = LayerValidity(name="good", valid=3, forbidden=("acc_sram",) * 20)
    assert SpaceValidity((good,)).holds
    bad = LayerValidity(name="bad", valid=2, wrong=(wrong(),), forbidden=("inp_sram",) * 20)
    strict = LayerValidity(
        name="strict", valid=1, forbidden=("acc_sram",) * 4, working=(("acc_sram", wrong()),)
    )
    crashed = LayerValidity(name="gone", crashed="the process ended")
    for layer in (bad, strict, crashed):
        assert not SpaceValidity((layer,)).holds
    everything = SpaceValidity((good, bad, strict, crashed))
    text = "\n".join(tables(everything))
    assert "bad: run_crash: it fell: {'tile': 2}" in text
    assert "strict: acc_sram forbids a point that works" in text
    assert "gone: the process ended" in text
    assert "5 of 6 valid points are right; 43 of 44 forbidden ones fail (97.7 %)" in text
    assert json.loads(json.dumps(document(everything)))["right"] == 5


def test_options_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "validity", "--layers", "C99"]) == 2
    assert "no layer 'C99'" in capsys.readouterr().err
    assert cli.main(["bench", "validity", "--points", "0"]) == 2
    assert "is not a whole number from 1 on" in capsys.readouterr().err
