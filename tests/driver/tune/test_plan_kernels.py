"""Kernels of plans run on the simulator, where there is one for this machine."""

from __future__ import annotations

import pytest
from tilefarm.errors import InfraError
from tilefarm.target import TARGETS
from tilefarm.workload import Workload

from compile_worker.space import lower_bound_cycles
from driver.network import import_model, load_data
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import fit_quantization
from driver.network.quantize.options import AS_USUAL
from driver.tune import plan_kernels
from driver.tune.plan_kernels import simulated


@pytest.fixture(scope="module")
def workload() -> Workload:
    """The last one of the demo: a small layer."""
    target, graph = TARGETS["sim"], import_model(DEMO_MODEL)
    fitted = fit_quantization(target, graph, load_data(DEMO_CALIBRATION, graph).inputs, AS_USUAL)
    return partition_network(fitted.quantized, target).workloads()[-1][0]


def test_a_kernel_runs_as_often_as_wanted_and_takes_the_same(workload: Workload) -> None:
    with simulated(TARGETS["sim"]) as measure:
        found = measure(workload)
        assert found is not None
        assert found == measure(workload)
    assert lower_bound_cycles(workload, TARGETS["sim"]) <= found


def test_no_kernel_runs_without_a_simulator(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(**_options: object) -> None:
        raise InfraError("not built")

    monkeypatch.setattr(plan_kernels, "Runner", missing)
    with simulated(TARGETS["sim"]) as measure:
        assert measure(workload) is None


def test_no_kernel_runs_that_is_for_another_processor(workload: Workload) -> None:
    with simulated(TARGETS["pynq-z1"]) as measure:
        assert measure(workload) is None
