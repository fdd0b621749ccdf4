"""Samples in flight: patterns that repeat, memory that they share, answers that do not change."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from kit.built import needs_simulator
from kit.networks.random_networks import Builder, conv, samples_for, window

from compile_worker.space import generate
from device_server.vta.library.library import VtaLibrary
from driver.benchmarks.accelerated_samples import accelerated_samples, pipeline_lines
from driver.memory import Buffer, Engine, Memory, Op, Problem, validate
from driver.network.integer.network import Network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.program.arena import plan_arena
from driver.program.fitting import fitted
from driver.program.network_plans import network_plans
from driver.program.pipeline import pipeline, unrolled
from driver.program.slots import in_slots, tensor_offsets
from driver.program.stages import stage_times, stages_of, stages_problem
from driver.program.steady_state import PipelineStep, steady_state
from driver.program.step_times import modelled_times
from driver.report.plans_section import plans_section
from driver.report.step_times import Basis, StepTime
from driver.targets import usable_target

_TICK = 1e6
PAIR = (Engine(name="a", in_order=False), Engine(name="b", in_order=False))


def chain(*works: tuple[str, int], nbytes: int = 256) -> Problem:
    """Operations one after the other; each hands a buffer to the next."""
    names = [f"t{at}" for at in range(len(works) - 1)]
    return Problem(
        buffers=tuple(Buffer(name=name, nbytes=nbytes) for name in names),
        ops=tuple(
            Op(
                name=f"op{at}",
                engine=engine,
                duration_ticks=ticks,
                reads=tuple(names[at - 1 : at] if at else ()),
                writes=tuple(names[at : at + 1]),
            )
            for at, (engine, ticks) in enumerate(works)
        ),
        memories=(Memory(name="arena"),),
        engines=PAIR,
    )


def test_two_engines_work_beside_each_other() -> None:
    made = pipeline(chain(("a", 10), ("b", 10)))
    assert (made.in_flight, made.ticks_a_sample, made.gap) == (2, 10, 1.0)
    assert pipeline(chain(("a", 10), ("b", 10)), 1).ticks_a_sample == 20


def test_a_busy_engine_is_never_idle_and_no_more_samples_are_in_flight_than_that_takes() -> None:
    works = [("b", 3), ("a", 20), ("b", 9), ("a", 30), ("b", 5)]
    made = pipeline(chain(*works))
    assert (made.busiest, made.bound_ticks) == ("a", 50)
    assert made.gap <= 1.02
    assert made.in_flight < 4


def test_one_engine_alone_has_nothing_to_gain() -> None:
    made = pipeline(chain(("a", 7), ("a", 8)))
    assert (made.in_flight, made.ticks_a_sample) == (1, 15)


@pytest.mark.parametrize("threads", [3, 9, 32])
def test_each_thread_takes_a_sample(threads: int) -> None:
    engines = (replace(PAIR[0], instances=threads),)
    made = pipeline(replace(chain(("a", 10 * threads)), engines=engines))
    assert (made.in_flight, made.ticks_a_sample, made.bound_ticks) == (threads, 10, 10)


@pytest.mark.parametrize("in_flight", [8, 20, 64])
def test_as_many_are_in_flight_as_somebody_asks_for(in_flight: int) -> None:
    made = pipeline(chain(("a", 10), ("b", 7), ("a", 4)), in_flight)
    assert (made.in_flight, made.ticks_a_sample) == (in_flight, 14)
    assert validate(*unrolled(made, in_flight + 3))


def test_slots_share_bytes_that_they_need_at_different_times() -> None:
    made = pipeline(chain(("a", 20), ("a", 30), ("b", 10), nbytes=1024), 2)
    assert made.nbytes == 2048, "two buffers a sample, and two samples"
    with pytest.raises(AssertionError, match="the plan is wrong"):
        unrolled(replace(made, offsets=({"t0": 0, "t1": 0},) * 2), 6)


def test_what_is_unrolled_is_proved_whatever_the_graph() -> None:
    rng = random.Random(1)
    for _ in range(12):
        works = [(rng.choice("ab"), rng.randint(1, 40)) for _ in range(rng.randint(2, 9))]
        made = pipeline(chain(*works, nbytes=rng.randint(1, 4000)))
        problem, plan = unrolled(made, 2 * made.in_flight + 3)
        assert validate(problem, plan)
        assert plan.makespan_ticks >= plan.bound_ticks
        assert made.gap >= 1.0


def test_no_pattern_is_none() -> None:
    turns = [PipelineStep(0, 5, ()), PipelineStep(1, 7, (0,)), PipelineStep(2, 11, (1,))]
    assert steady_state(turns, [3, 5, 7], 15) is None, "the engines' turns meet after 105 samples"


def a_network(target: str) -> Network:
    """Two convolutions between float ends, and a pooling that the processor does not do."""
    rng, b = np.random.default_rng(0), Builder((1, 16, 6, 6))
    first = b.put(conv(rng, 16, 32, window(3, pad=1)), "x")
    graph = b.graph(b.put(conv(rng, 32, 16, window(1)), first))
    network = partition_network(quantize(graph, samples_for(graph, 0)), usable_target(target))
    return plan_arena(network, {}).network


def test_a_stage_is_a_run_of_steps_of_one_engine() -> None:
    network = a_network("sim-pynq-z1")
    stages = stages_of(network)
    assert [stage.engine for stage in stages] == ["processor", "accelerator", "processor"]
    assert sum((stage.steps for stage in stages), ()) == network.steps
    assert stages[1].inner, "what is between the convolutions is of nobody else"
    single = stages_problem(network, stages, stage_times(stages, modelled_times(network)))
    made = pipeline(single, 2)
    offsets = [tensor_offsets(stages, mine) for mine in made.offsets]
    whole = {tensor.name for tensor in network.tensors_of("intermediate")}
    assert [set(mine) for mine in offsets] == [whole, whole]
    several = in_slots(network, 2)
    assert len(several.steps) == 2 * len(network.steps)
    assert set(several.constants) == set(network.constants)


def test_the_plans_of_a_run_are_of_one_sample_and_of_several() -> None:
    network = a_network("sim-ultra96")
    plans = network_plans(network, {}, None)
    assert plans.alone.plan.makespan_ticks == sum(op.ticks for op in plans.alone.problem.ops)
    assert validate(plans.alone.problem, plans.alone.plan)
    assert plans.in_flight is not None
    assert plans.in_flight.name == "2 samples in flight, the oldest first"
    shown = plans_section(plans)
    assert shown.count("<svg") == 3, "two charts of engines, one of memory"
    assert "Predicted and measured" not in shown, "nothing was measured"
    measured = {step.name: 2 * _TICK for step in network.steps}
    times = {
        name: StepTime(basis=Basis.PROGRAM, median=t, p10=t, p90=t) for name, t in measured.items()
    }
    fit = fitted(modelled_times(network), times, lambda _: (plans.alone.problem, plans.alone.plan))
    shown = plans_section(replace(plans, times=fit))
    assert "the plan rests on measured times" in shown
    assert shown.count(">critical<") >= len(network.steps)


@needs_simulator
def test_samples_in_flight_give_the_answers_of_one_at_a_time() -> None:
    network = a_network("sim-ultra96")
    spaces = {work: generate(work, network.target) for work, _ in network.workloads()}
    traces = {work: space.trace(dict(space.space.default)) for work, space in spaces.items()}
    data = {i.name: np.random.default_rng(3).normal(size=(5, *i.shape[1:])) for i in network.inputs}
    found = accelerated_samples(network, traces, data, in_flight=2, library=VtaLibrary())
    assert found.differing == 0
    assert found.made.in_flight == 2
    assert len(found.run.outputs[0][network.outputs[0].name]) == found.samples
    assert found.run.gap > 0.999, "nothing is faster than its bound"
    first, *_ = pipeline_lines(found, network.target)
    assert first.startswith("2 samples in flight, accelerator at 333 MHz: ")
