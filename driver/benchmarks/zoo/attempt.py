"""One network of the zoo: from its file to answers of float, integers and device on its samples."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.clock import Clock, SystemClock
from tilefarm.errors import DataError, InfraError, TilefarmError
from tilefarm.target import Target

from driver.benchmarks.zoo.device import FIRST_RUNS, OnDevice, on_device
from driver.benchmarks.zoo.recipes import WITHIN_OF_PEER, ZooRecipe
from driver.benchmarks.zoo.records import Attempt, RefusedNetwork, TargetUse, Tried
from driver.benchmarks.zoo.samples import RandomInputs, Samples, read
from driver.benchmarks.zoo.scores import METRICS
from driver.commands.validation.explaining import crossings
from driver.network import (
    Arrays,
    Dataset,
    Fitted,
    Graph,
    Network,
    Quantization,
    dataset_of,
    fit_quantization,
    has_own_arithmetic,
    import_for,
    is_built_in,
    judge_of,
    kind_of,
    model_files,
    noise_between,
    partition_network,
    random_images,
    run_float,
    run_integer,
    seeded_data,
    tensors_without_range,
)
from driver.program.evaluate import differing_samples
from driver.program.onnx_runtime import peer_outputs, quantized_by_peer
from driver.targets import usable_target

_RUNS_TO_CALIBRATE: Final = 4
"""Of a network without data."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Labelled:
    """A recipe's samples: to calibrate on, to score, and whether these are all that there are."""

    calibration: Samples
    scored: Samples
    is_all: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Answers:
    """Outputs by name for the scored samples, and what they say of the network."""

    graph: Graph
    network: Network
    scored: Dataset
    floats: Arrays
    integers: Arrays
    device: OnDevice
    peer: Arrays | None
    peer_int8: Arrays | None


def attempt(task: Attempt, clock: Clock | None = None) -> Tried | RefusedNetwork:
    """Try one network; a typed error becomes a refusal."""
    clock = clock or SystemClock()
    began = clock.seconds()
    try:
        data = _labelled(task)
        with tempfile.TemporaryDirectory(prefix="tilefarm-zoo-") as folder:
            answers = _answers(task, data, Path(folder), clock)
    except TilefarmError as error:
        return RefusedNetwork(task.name, str(error))
    return _tried(task, data, answers, clock.seconds() - began)


def _labelled(task: Attempt) -> _Labelled | None:
    """The samples of the recipe; None where it has none.

    Raises:
        DataError: they cannot be read, or are too few.
    """
    if isinstance(task.recipe.data, RandomInputs):
        return None
    every, held = read(task.recipe.data, task.data), task.recipe.calibrate
    if len(every.labels) <= held:
        raise DataError(
            f"{task.data}: {len(every.labels)} labels, but the first {held} calibrate",
            "give the data that the zoo was published with",
        )
    kept = every.after(held)
    most = min((n for n in (task.samples, task.recipe.most) if n is not None), default=None)
    scored = kept if most is None else kept.first(most)
    return _Labelled(
        calibration=every.first(held) if held else every,
        scored=scored,
        is_all=len(scored.labels) == len(kept.labels),
    )


def _answers(task: Attempt, data: _Labelled | None, folder: Path, clock: Clock) -> _Answers:
    """Everything from the model's file on."""

    def say(words: str) -> None:
        if task.says:
            print(f"{task.name}: {words}", file=sys.stderr, flush=True)

    began = clock.seconds()
    target = usable_target(task.target)
    path = model_files(task.model, None, folder).model
    graph = import_for(target, path)
    calibration, scored = _inputs(task, data, graph)
    fitted = _fitted(graph, calibration, task.how, target)
    quantized = fitted.quantized
    for note in fitted.notes:
        say(note)
    network = partition_network(quantized, target)
    peer = _peer(path, graph, scored, say) if task.with_peer else None
    peer_int8 = None
    if peer is not None:
        if unfit := _no_int8_of_peer(graph, data):
            say(f"ONNX Runtime does not quantize it: {unfit}")
        else:
            peer_int8 = _peer_int8(path, graph, calibration, scored, folder, say)
    return _Answers(
        graph=graph,
        network=network,
        scored=scored,
        device=on_device(network, scored, say, clock=clock, began=began),
        integers=run_integer(quantized, scored.inputs),
        floats=run_float(graph, scored.inputs),
        peer=peer,
        peer_int8=peer_int8,
    )


def _fitted(graph: Graph, data: Dataset, how: Quantization, target: Target) -> Fitted:
    """In integers; a network that gives every range is taken as it is, without looking at data."""
    if not _was_quantized(graph):
        return fit_quantization(target, graph, data.inputs, how)
    return fit_quantization(target, graph, None, how.without_data())


def _was_quantized(graph: Graph) -> bool:
    """Whether the file gives every range, or its own arithmetic."""
    return has_own_arithmetic(graph) or not tensors_without_range(graph)


def _inputs(task: Attempt, data: _Labelled | None, graph: Graph) -> tuple[Dataset, Dataset]:
    """What calibrates and what is scored, as the network takes it."""
    if data is None:
        return _made_up(task, graph, _RUNS_TO_CALIBRATE, 0), _made_up(task, graph, FIRST_RUNS, 1)
    both = (data.calibration, data.scored)
    calibration, scored = (in_reals(each, task.recipe, graph, task.data) for each in both)
    return calibration, scored


def _made_up(task: Attempt, graph: Graph, runs: int, seed: int) -> Dataset:
    if is_built_in(task.model):
        return dataset_of({"x": random_images(runs * graph.batch, seed=seed)}, graph, task.data)
    return seeded_data(graph, runs * graph.batch, seed)


def in_reals(samples: Samples, recipe: ZooRecipe, graph: Graph, path: Path) -> Dataset:
    """(x - mean) * factor in float32, in the network's layout."""
    x = (samples.x.astype(np.float32) - np.float32(recipe.mean)) * np.float32(recipe.factor)
    return dataset_of({"x": x}, graph, path)


def _peer(path: Path, graph: Graph, data: Dataset, say: Callable[[str], None]) -> Arrays | None:
    """ONNX Runtime's outputs; none where it fails, which is not ours to blame."""
    try:
        return peer_outputs(path, graph, data.inputs)
    except InfraError as error:
        say(error.what)
        return None


def _no_int8_of_peer(graph: Graph, data: _Labelled | None) -> str:
    """Why a network is not quantized by ONNX Runtime as well; empty if it is."""
    if _was_quantized(graph):
        return "the model is quantized already"
    return "" if data is not None else "there are no data to calibrate it"


def _peer_int8(
    path: Path,
    graph: Graph,
    calibration: Dataset,
    scored: Dataset,
    folder: Path,
    say: Callable[[str], None],
) -> Arrays | None:
    """The outputs of ONNX Runtime's own int8 of a float network; none where it fails."""
    try:
        quantized_by_peer(path, graph, calibration.inputs, folder / "peer_int8.onnx")
    except InfraError as error:
        say(error.what)
        return None
    return _peer(folder / "peer_int8.onnx", graph, scored, say)


def _tried(task: Attempt, data: _Labelled | None, answers: _Answers, seconds: float) -> Tried:
    recipe, device = task.recipe, answers.device
    labels = data.scored.labels if data is not None and recipe.labelled else None
    known = labels if recipe.metric == "accuracy" else None
    kind = kind_of(answers.graph, known)
    judge = judge_of(kind, answers.graph, answers.floats, known)

    def score(outputs: Arrays | None) -> float | None:
        return None if outputs is None else _score(recipe, answers.scored, outputs, labels)

    peer = score(answers.peer)
    return Tried(
        name=task.name,
        recipe=recipe,
        labels=0 if labels is None else len(labels),
        samples=answers.scored.samples,
        is_seeded=data is None,
        floats=score(answers.floats),
        integers=score(answers.integers),
        device=score(device.outputs),
        peer=peer,
        peer_db=None if answers.peer is None else _worst_db(answers.peer, answers.integers),
        peer_int8=score(answers.peer_int8),
        peer_int8_db=None
        if answers.peer_int8 is None
        else _worst_db(answers.floats, answers.peer_int8),
        was_quantized=_was_quantized(answers.graph),
        gate=_gate(recipe, peer) if data is not None and data.is_all else None,
        kind=kind,
        compared=judge.compared(answers.integers, answers.device.outputs),
        differing=_differing(device, answers.integers),
        sqnr_db=_worst_db(answers.floats, answers.integers),
        use=TargetUse(
            share=_share(answers.network),
            crossings=len(crossings(answers.network)),
            macs=answers.network.macs,
            plain_cycles=device.plain_cycles,
            predicted_cycles=device.predicted_cycles,
            program_seconds=device.program_seconds,
            ready_seconds=device.ready_seconds,
        ),
        seconds=seconds,
    )


def _score(
    recipe: ZooRecipe, data: Dataset, outputs: Arrays, labels: NDArray[np.int64] | None
) -> float | None:
    """By the first output; None where there are no labels."""
    if labels is None:
        return None
    x, y = next(iter(data.inputs.values())), next(iter(outputs.values()))
    return METRICS[recipe.metric](x, y, labels)


def _differing(device: OnDevice, integers: Arrays) -> int:
    """Samples that are not the reference's with the plain schedules, or with the predicted ones."""
    first = len(next(iter(device.first.values())))
    reference = {name: values[:first] for name, values in integers.items()}
    return max(
        differing_samples(device.first, reference), differing_samples(device.outputs, integers)
    )


def _gate(recipe: ZooRecipe, measured: float | None) -> float | None:
    """The least score; that of a network quantized before follows from ONNX Runtime's."""
    if recipe.peer is None:
        return recipe.gate or None
    return (recipe.peer if measured is None else measured) - WITHIN_OF_PEER


def _share(network: Network) -> float | None:
    if not network.target.has_accelerator:
        return None
    there = sum(step.macs for step in network.steps if step.place == "accelerator")
    return there / network.macs if network.macs else 1.0


def _worst_db(wanted: Arrays, found: Arrays) -> float | None:
    """The lowest signal-to-difference ratio of all outputs; None where all are equal."""
    worst = min(noise_between(wanted[name], found[name]).ratio_db for name in found)
    return worst if math.isfinite(worst) else None
