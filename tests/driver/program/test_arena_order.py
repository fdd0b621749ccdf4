"""Steps in another order: a smaller arena, the same bits; the given order where none is better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kit.built import needs_simulator
from kit.networks.random_networks import Builder, conv, samples_for, window
from tilefarm.target import Target

from compile_worker.space import generate
from driver.memory import Plan, plan
from driver.network.graph.ir import Add, Concat, Graph
from driver.network.integer.network import Network
from driver.network.integer.reference import run_integer
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.program import arena
from driver.program.arena import arena_problem, plan_arena, program_problem
from driver.program.simulated import answers_of, assembled
from driver.targets import usable_target


def level_by_level(joined: type[Add | Concat]) -> Graph:
    """Three branches, wide at first and narrow then, whose layers come level by level."""
    rng, b = np.random.default_rng(0), Builder((1, 16, 6, 6))
    stem = b.put(conv(rng, 16, 16, window(1)), "x")
    wide = [b.put(conv(rng, 16, 64, window(1)), stem) for _ in range(3)]
    narrow = [b.put(conv(rng, 64, 16, window(1)), each) for each in wide]
    if joined is Concat:
        return b.graph(b.put(conv(rng, 48, 16, window(1)), b.put(Concat(), *narrow)))
    total = b.put(Add(), narrow[0], narrow[1])
    return b.graph(b.put(conv(rng, 16, 16, window(1)), b.put(Add(), total, narrow[2])))


def network_for(graph: Graph, target: Target) -> Network:
    return partition_network(quantize(graph, samples_for(graph, 0)), target)


@needs_simulator
@pytest.mark.parametrize("target", ["sim", "cpu"])
@pytest.mark.parametrize("joined", [Add, Concat])
def test_reordered_steps_give_the_same_bits_with_a_smaller_arena(
    target: str, joined: type[Add | Concat]
) -> None:
    graph = level_by_level(joined)
    quantized = quantize(graph, samples_for(graph, 0))
    network = partition_network(quantized, usable_target(target))
    planned = plan_arena(network, {})
    assert planned.nbytes < 0.8 * planned.picture.given_nbytes
    assert [step.name for step in planned.network.steps] != [step.name for step in network.steps]
    assert sorted(planned.picture.steps) == sorted(step.name for step in network.steps)
    spaces = {work: generate(work, network.target) for work, _ in network.workloads()}
    traces = {work: space.trace(dict(space.space.default)) for work, space in spaces.items()}
    program = assembled(network, traces)
    assert program.arena_nbytes == planned.nbytes
    samples = samples_for(graph, 1)
    answers = answers_of(program, samples).outputs
    for name, wanted in run_integer(quantized, samples).items():
        assert answers[name].tobytes() == wanted.astype(np.float32).tobytes()


def test_an_order_that_is_best_is_kept() -> None:
    rng, b = np.random.default_rng(0), Builder((1, 16, 4, 4))
    first = b.put(conv(rng, 16, 16, window(1)), "x")
    graph = b.graph(b.put(conv(rng, 16, 16, window(1)), first))
    network = network_for(graph, usable_target("sim"))
    planned = plan_arena(network, {})
    assert planned.network.steps == network.steps
    assert planned.picture.given_nbytes == planned.nbytes


def test_the_accelerator_is_not_interrupted_more_often() -> None:
    """With a step of the processor between those of the accelerator less can move."""
    network = network_for(level_by_level(Add), usable_target("sim"))
    at = next(i for i, step in enumerate(network.steps) if step.name == "n2")
    steps = [
        replace(step, place="cpu") if i == at else step for i, step in enumerate(network.steps)
    ]
    mixed = plan_arena(replace(network, steps=tuple(steps)), {})
    assert [step.place for step in mixed.network.steps] == [step.place for step in steps]
    assert plan_arena(network, {}).nbytes < mixed.nbytes


def test_it_is_where_that_hardly_takes_time_and_saves_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The processor's step moves between those of the accelerator, if that is worth anything."""
    network = network_for(level_by_level(Add), usable_target("sim"))
    at = next(i for i, step in enumerate(network.steps) if step.name == "n2")
    steps = [
        replace(step, place="cpu") if i == at else step for i, step in enumerate(network.steps)
    ]
    mixed = replace(network, steps=tuple(steps))
    kept = plan_arena(mixed, {})
    monkeypatch.setattr(arena, "lower_bound_cycles", lambda workload, target: 1_000_000)
    moved = plan_arena(mixed, {})
    assert moved.nbytes < kept.nbytes
    assert moved.nbytes == plan_arena(network, {}).nbytes
    assert plan_arena(mixed, {}, keeps_runs=True).nbytes == kept.nbytes
    shown = plan(program_problem(mixed))
    assert isinstance(shown, Plan)
    assert shown.peak_nbytes(arena.ARENA) == moved.nbytes
    assert shown.order == moved.picture.steps


def test_what_several_steps_write_keeps_the_order_of_those_that_write_it() -> None:
    """The second writer's bytes are read, whatever else moves."""
    network = network_for(level_by_level(Concat), usable_target("sim"))
    first, *others = network.steps
    again = replace(first, name="again")
    problem = arena_problem(replace(network, steps=(first, again, *others)), {})
    ops = {op.name: op for op in problem.ops}
    assert ops["again"].after == (first.name,)
