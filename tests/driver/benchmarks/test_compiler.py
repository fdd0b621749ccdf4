"""`tilefarm bench compiler`: stages, rates and memory of small layers, and how they are shown."""

from __future__ import annotations

import itertools
import json

import pytest
from kit.golden import Golden
from kit.kernels.programs import SIM
from tilefarm.errors import InfraError
from tilefarm.trace import Step, Trace

from compile_worker.machines.known import MACHINES
from driver.benchmarks.compiler import candidates, document, tables
from driver.benchmarks.compiler_stages import LayerFigures, layer_figures, processor_seconds
from driver.benchmarks.compiler_workers import WorkerMemory, rate, worker_memory
from driver.program.vta.layers import Convolution

SMALL = {"C2": Convolution(16, 16, 6, 6, 3, 1, 1), "C4": Convolution(32, 16, 4, 4, 1, 2, 0)}
VTA = MACHINES["vta"].passes
PASSES = {step.name: 0.008 / len(VTA) for step in VTA}


def figures(name: str, seconds: float) -> LayerFigures:
    others = {"nest": 0.001, "scheduled": 0.004, "text": 0.001, "llvm": 0.003, "link": 0.004}
    return LayerFigures(
        name=name,
        candidates=3,
        seconds=seconds,
        most_seconds=2 * seconds,
        wall_seconds=seconds + 0.001,
        stages={**others, **PASSES, "features": 0.0005},
        nbytes=5_000,
    )


MEMORY = WorkerMemory(
    readings=((16, 100 << 20), (100, 120 << 20), (200, 120 << 20), (300, 120 << 20))
)


def test_every_stage_of_every_candidate_is_timed() -> None:
    jobs = candidates(SIM, 3, 0, SMALL)
    ticks = itertools.count()
    found = layer_figures("C2", jobs["C2"], lambda: float(next(ticks)), lambda: 0.0)
    stages = ["nest", "scheduled", *PASSES, "text", "llvm", "link", "features"]
    assert list(found.stages) == stages
    assert set(found.stages.values()) == {1.0}
    assert found.seconds == found.most_seconds == len(stages)
    assert found.group("passes") == len(PASSES)
    assert found.nbytes > 1000


def test_candidates_are_as_many_as_asked_and_the_same_for_a_seed() -> None:
    jobs = candidates(SIM, 3, 1, SMALL)
    assert [len(some) for some in jobs.values()] == [3, 3]
    assert jobs == candidates(SIM, 3, 1, SMALL) != candidates(SIM, 3, 2, SMALL)


def test_rates_and_memory_are_those_of_worker_processes() -> None:
    (some,) = candidates(SIM, 2, 0, {"C4": SMALL["C4"]}).values()
    assert rate(some, 1, on_ray=False) > 0
    readings = worker_memory(some, 5).readings
    assert readings[-1][0] == 5
    assert all(20 << 20 < nbytes < 1 << 30 for _, nbytes in readings)


def test_a_candidate_that_does_not_compile_is_no_figure() -> None:
    (some,) = candidates(SIM, 1, 0, {"C4": SMALL["C4"]}).values()
    wrong = type(some[0])(
        workload=some[0].workload, trace=Trace((Step("nosuch"),)), target=some[0].target
    )
    with pytest.raises(InfraError, match="a candidate does not compile"):
        rate([wrong], 1, on_ray=False)


def test_processor_time_goes_on() -> None:
    before = processor_seconds()
    sum(range(100_000))
    assert processor_seconds() > before


def test_growth_is_over_the_second_half() -> None:
    assert MEMORY.growth_nbytes == 0
    growing = WorkerMemory(readings=((0, 0), (100, 50 << 20), (200, (50 << 20) + 100_000)))
    assert growing.growth_nbytes == 1000


def test_figures_as_tables(golden: Golden) -> None:
    layers = [figures("C2", 0.0305), figures("C10", 0.0205)]
    shown = tables(layers, {1: 40.25, 2: 77.0}, MEMORY)
    golden("\n".join(line for line in shown if not line.startswith("slowest passes")))


def test_the_document_is_json() -> None:
    made = json.loads(json.dumps(document([figures("C2", 0.03)], {2: 60.0}, MEMORY)))
    assert made["median_seconds"] == 0.03
    assert made["candidates_per_second"] == {"2": 60.0}
    assert made["worker_nbytes"][-1] == [300, 120 << 20]
