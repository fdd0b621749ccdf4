"""Times of a network's steps: from records, from a profile, from a model; and who is believed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from kit.networks.random_networks import Builder, conv, samples_for, window
from numpy.random import default_rng
from tilefarm.digest import Digest
from tilefarm.errors import DataError
from tilefarm.measurement import Status, Trial

from driver.memory import Infeasible, Plan, Problem, plan
from driver.network.integer.network import Network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.program.arena import program_problem
from driver.program.fitting import fitted
from driver.program.step_times import (
    kernel_times,
    modelled_times,
    program_times,
    refitted,
)
from driver.report.step_times import Basis, StepTime, modelled_share
from driver.targets import usable_target
from tuner.trial_store import TrialStore

_CYCLES = 4321


def a_network() -> Network:
    """Two convolutions between float ends."""
    rng, b = default_rng(0), Builder((1, 16, 4, 4))
    first = b.put(conv(rng, 16, 16, window(1)), "x")
    graph = b.graph(b.put(conv(rng, 16, 32, window(1)), first))
    return partition_network(quantize(graph, samples_for(graph, 0)), usable_target("sim-pynq-z1"))


def searched(network: Network) -> str:
    return next(step.name for step in network.steps if step.place == "accelerator")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that measured one kernel alone, and two layers of its program."""
    network = a_network()
    first = next(step for step in network.steps if step.place == "accelerator")
    host = next(step for step in network.steps if step.place == "cpu")
    identity = {"schema": 1, "target_digest": network.target.digest.hex}
    (tmp_path / "run.json").write_text(json.dumps(identity))
    trial = Trial(
        workload=first.workload.digest,
        trace=Digest.of(b"trace"),
        point=(),
        status=Status.OK,
        cycles=_CYCLES,
    )
    with TrialStore(tmp_path / "records.sqlite") as store:
        store.begin_run("r", {}, begun=0.0)
        store.insert(trial, run="r")
    seconds = {"p10_seconds": 2e-6, "median_seconds": 3e-6, "p90_seconds": 7e-6}
    layers: list[Mapping[str, object]] = [
        {"layer": first.name, "kernel": first.workload.name, "cycles": 2 * _CYCLES},
        {"layer": host.name, "kernel": host.workload.name, "cycles": 0, **seconds},
        {"layer": "gone", "kernel": "conv", "cycles": 1},
    ]
    (tmp_path / "summary.json").write_text(json.dumps({"profile": {"layers": layers}}))
    return tmp_path


def test_times_are_those_of_the_records(folder: Path) -> None:
    network = a_network()
    kernels, measured = kernel_times(network, folder), program_times(network, folder)
    name = searched(network)
    assert [(each, time.ticks) for each, time in kernels.items()] == [(name, 10 * _CYCLES)]
    assert measured[name].ticks == 20 * _CYCLES
    host = next(step.name for step in network.steps if step.place == "cpu")
    assert set(measured) == {name, host}
    assert (measured[host].ticks, measured[host].basis) == (3000, Basis.PROGRAM)
    assert kernel_times(network, folder / "program") == kernels, "its program's folder names it too"


def test_samples_have_the_percentiles_and_the_median_in_their_middle() -> None:
    time = StepTime(basis=Basis.PROGRAM, median=300.0, p10=200.0, p90=700.0)
    samples = time.samples
    assert (samples[0], samples[5], samples[-1]) == (200, 300, 700)
    assert list(samples) == sorted(samples)
    assert StepTime(basis=Basis.MODEL, median=5.0, p10=5.0, p90=5.0).samples == ()


def test_what_nobody_measured_is_modelled_and_its_share_said(folder: Path) -> None:
    network = a_network()
    model = modelled_times(network)
    assert set(model) == {step.name for step in network.steps}
    assert modelled_share(model) == 1.0
    known = model | kernel_times(network, folder)
    assert 0 < modelled_share(known) < 1


def planned(times: Mapping[str, StepTime]) -> tuple[Problem, Plan | Infeasible]:
    problem = program_problem(a_network(), times)
    return problem, plan(problem)


def test_critical_steps_that_are_off_make_the_plan_anew(folder: Path) -> None:
    network = a_network()
    predicted = modelled_times(network) | kernel_times(network, folder)
    fit = fitted(predicted, program_times(network, folder), planned)
    assert fit.is_refitted
    name = searched(network)
    assert name in [each.name for each in fit.misfits]
    assert fit.times[name].ticks == 20 * _CYCLES
    problem, found = planned(fit.times)
    assert isinstance(found, Plan)
    assert found.makespan_ticks == sum(op.ticks for op in problem.ops)


def test_predictions_that_hold_are_kept(folder: Path) -> None:
    network = a_network()
    measured = program_times(network, folder)
    fit = fitted(modelled_times(network) | measured, measured, planned)
    assert not fit.is_refitted
    assert len(fit.steps) == len(measured)


def test_a_model_is_scaled_as_it_was_off() -> None:
    def of(median: float, basis: Basis) -> StepTime:
        return StepTime(basis=basis, median=median, p10=median, p90=median)

    model = {"a": of(10, Basis.MODEL), "b": of(30, Basis.MODEL), "c": of(7, Basis.KERNEL)}
    found = refitted(model, {"a": of(20, Basis.PROGRAM)})
    assert [found[name].median for name in "abc"] == [20, 60, 7]


def test_records_of_another_target_or_none_are_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "run.json").write_text(json.dumps({"target_digest": Digest.of(b"other").hex}))
    with pytest.raises(DataError, match="records of another target than sim-pynq-z1"):
        kernel_times(a_network(), folder)
    with pytest.raises(DataError, match="no records of a run"):
        kernel_times(a_network(), tmp_path / "none" / "program")


def test_a_damaged_summary_is_told(folder: Path) -> None:
    (folder / "summary.json").write_text('{"profile": {"layers": [{}]}}')
    with pytest.raises(DataError, match=r"summary\.json: damaged"):
        program_times(a_network(), folder)
