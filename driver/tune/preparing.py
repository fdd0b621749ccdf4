"""The steps before the search: from the user's files to kernels with spaces to search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.plural import plural
from tilefarm.target import Target

from compile_worker.plugins.passes import default_trace
from driver.campaign.tasks import tasks_of
from driver.network import (
    Custom,
    Fitted,
    calibration_notes,
    fit_quantization,
    has_own_arithmetic,
    held_out,
    import_for,
    in_words,
    kind_of,
    load_data,
    model_digest,
    partition_network,
    ranges_of,
    require_layers,
    seeded_data,
)
from driver.tune.files import Files
from driver.tune.judged import judge_promise, require_samples
from driver.tune.prepared import Prepared
from driver.tune.run_context import RunContext
from driver.tune.user_intrinsics import where_used

_SEEDED_RUNS: Final = 4


def read(context: RunContext, target: Target) -> Files:
    """Import the model, and load or make the data.

    Raises:
        UserError: a file cannot be read, the model is not one that is known here, or it lacks a
            layer that the user names.
    """
    settings = context.settings
    with context.step("import") as say:
        graph = import_for(target, settings.model, settings.extents)
        digest = model_digest(settings.model)
        say(f"{graph.name}, {plural(len(graph.nodes), 'operator')}")
        for node in graph.nodes:
            if isinstance(node.op, Custom):
                say(f"{node.name} ({node.op.label}): {node.op.checked}")
        require_layers(graph, settings.quantization)
        calibration = None
        needs_none = settings.quantization.floats or has_own_arithmetic(graph)
        if settings.calibrate is None and not needs_none:
            ranges_of(graph, None)  # refused before anything is started
        elif settings.calibrate is not None:
            calibration = load_data(settings.calibrate, graph)
            say(f"{plural(calibration.samples, 'sample')} to calibrate")
        is_seeded = settings.evaluate is None and calibration is None
        if settings.evaluate is not None:
            evaluation = load_data(settings.evaluate, graph)
        elif calibration is not None:
            evaluation = calibration
        else:
            evaluation = seeded_data(graph, _SEEDED_RUNS * graph.batch, settings.seed)
            say("no data were given: the samples are random")
        for path, given in ((settings.calibrate, calibration), (settings.evaluate, evaluation)):
            for note in given.notes if path is not None and given is not None else ():
                context.say(f"{path}: {note}")
        kind = kind_of(graph, evaluation.labels, settings.judge)
        say(f"{evaluation.samples} to evaluate")
    files = Files(
        graph=graph,
        calibration=calibration,
        evaluation=evaluation,
        is_seeded=is_seeded,
        held_out=held_out(evaluation, calibration),
        kind=kind,
        model_digest=digest,
    )
    require_samples(settings.promise, files)
    return files


def _arithmetic(files: Files, fitted: Fitted, target: Target) -> Iterator[str]:
    """How the network became what is computed."""
    graph, calibration = files.graph, files.calibration
    samples = "" if calibration is None else plural(calibration.samples, "sample")
    if fitted.how.floats:
        yield str(fitted.how)
    elif target.has_accelerator:
        if graph.ranges:
            yield f"int8 by {plural(len(graph.ranges), 'range')} in the model"
        if samples:
            yield f"int8 by {samples}, {fitted.how}"
    else:
        yield in_words(graph, fitted.how)
        if samples:
            decides = has_own_arithmetic(graph)
            yield "calibration data are only looked at: the file decides" if decides else samples


def prepare(context: RunContext, files: Files, target: Target) -> Prepared:
    """Quantize the network for a target, divide it into kernels, and give each a space.

    Raises:
        SettingsError: a promise cannot be kept, see `driver.tune.judged`.
    """
    settings, graph, calibration = context.settings, files.graph, files.calibration
    with context.step("quantize") as say:
        data = None if calibration is None else calibration.inputs
        fitted = fit_quantization(target, graph, data, settings.quantization)
        quantized = fitted.quantized
        for words in _arithmetic(files, fitted, target):
            say(words)
    for note in fitted.notes:
        context.say(f"quantization: {note}")
    if calibration is not None:
        for note in calibration_notes(calibration.inputs, calibration.labels):
            context.say(f"calibration: {note}")
    with context.step("partition") as say:
        network = partition_network(quantized, target)
        on_accelerator = sum(s.place == "accelerator" for s in network.steps)
        if target.has_accelerator:
            say(f"{plural(on_accelerator, 'kernel')} on the accelerator")
            say(f"{len(network.steps) - on_accelerator} on the CPU")
        else:
            say(plural(len(network.steps), "kernel"))
        say(f"{network.macs / 1e6:.2f} million MACs")
    judged = judge_promise(context, files, target, fitted, network)
    with context.step("spaces") as say:
        tasks = tasks_of(judged.network, settings.seed)
        say(f"{len(tasks)} distinct workloads")
        for step in default_trace().steps:
            say(f"every kernel lowered with {step.args[0]}")
        for line in where_used(tasks.values()):
            say(line)
    return Prepared(files=files, judged=judged, tasks=tasks)
