"""The steps before the search: from the user's files to kernels with spaces to search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilefarm.digest import Digest
from tilefarm.plural import plural
from tilefarm.target import Target

from driver.accuracy.choosing import kind_of
from driver.accuracy.kinds import Kind
from driver.frontend import Dataset, import_model, load_data
from driver.frontend.seeded import seeded_data
from driver.frontend.whole_model import model_digest
from driver.graph.ir import Graph
from driver.partition.partitioner import partition
from driver.quantize.fitting import quantize_for
from driver.quantize.ranges import ranges_of
from driver.search.preparing import tasks_of
from driver.steps.prepared import Prepared
from driver.steps.stages import Stages

_SEEDED_RUNS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What the user's files hold; no calibration where the model has its own ranges.

    `kind` is what the network answers.
    """

    graph: Graph
    calibration: Dataset | None
    evaluation: Dataset
    kind: Kind
    model_digest: Digest


def read(stages: Stages) -> Files:
    """Import the model, and load or make the data.

    Raises:
        UserError: a file cannot be read, or the model is not one that is known here.
    """
    settings = stages.settings
    with stages.step("import") as say:
        graph = import_model(settings.model, settings.extents)
        digest = model_digest(settings.model)
        say(f"{graph.name}, {plural(len(graph.nodes), 'operator')}")
        calibration = None
        if settings.calibrate is None:
            ranges_of(graph, None)  # refused before anything is started
        else:
            calibration = load_data(settings.calibrate, graph)
            say(f"{plural(calibration.samples, 'sample')} to calibrate")
        if settings.evaluate is not None:
            evaluation = load_data(settings.evaluate, graph)
        elif calibration is not None:
            evaluation = calibration
        else:
            evaluation = seeded_data(graph, _SEEDED_RUNS * graph.batch, settings.seed)
            say("no data were given: the samples are random")
        kind = kind_of(graph, evaluation.labels, settings.judge)
        say(f"{evaluation.samples} to evaluate")
    return Files(
        graph=graph,
        calibration=calibration,
        evaluation=evaluation,
        kind=kind,
        model_digest=digest,
    )


def prepare(stages: Stages, files: Files, target: Target) -> Prepared:
    """Quantize the network for a target, divide it into kernels, and give each a space."""
    settings, graph, calibration = stages.settings, files.graph, files.calibration
    with stages.step("quantize") as say:
        data = None if calibration is None else calibration.inputs
        how = settings.quantization
        quantized = quantize_for(target, graph, data, how)
        if graph.ranges:
            say(f"int8 by {plural(len(graph.ranges), 'range')} in the model")
        if calibration is not None:
            say(f"int8 by {plural(calibration.samples, 'sample')}, {how}")
    with stages.step("partition") as say:
        network = partition(quantized, target)
        on_accelerator = sum(s.place == "accelerator" for s in network.steps)
        say(f"{plural(on_accelerator, 'kernel')} on the accelerator")
        say(f"{len(network.steps) - on_accelerator} on the CPU")
        say(f"{network.macs / 1e6:.2f} million MACs")
    with stages.step("spaces") as say:
        tasks = tasks_of(network, settings.seed)
        say(f"{len(tasks)} distinct workloads")
    return Prepared(
        graph=graph,
        quantized=quantized,
        network=network,
        tasks=tasks,
        evaluation=files.evaluation,
        kind=files.kind,
        model_digest=files.model_digest,
    )
