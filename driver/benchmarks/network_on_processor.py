"""`tilefarm bench network` on a processor: a whole network in seconds, a row a layer.

A wall clock tells the time, so the network is tuned as `tilefarm tune` does it, on one device: its
best schedules have been timed again in turns, and its layers and its whole program on one device.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from tilefarm.errors import InfraError, SettingsError
from tilefarm.plural import plural
from tilefarm.system_errors import unwritable
from tilefarm.target import Target

from compile_worker.space import has_space
from driver.benchmarks.command_line import tell
from driver.benchmarks.samples_on_threads import lines_of_threads, samples_on_threads
from driver.commands.options.networks import source_of
from driver.farm.settings import FarmSettings
from driver.network import forms_of, model_files
from driver.program.deployed import read_program
from driver.report.cost import microseconds
from driver.report.profile import LayerTime, Profile
from driver.report.profile_rows import profile_document
from driver.report.summary import Accuracy, RunSummary
from driver.report.terminal.ended import Ended, Listener, Shown
from driver.report.terminal.profile_text import against_the_whole
from driver.report.terminal.tables import gmacs, share
from driver.report.terminal.text_table import text_table
from driver.report.terminal.views import PlainLines
from driver.run_events import Span
from driver.tune.settings import TuneSettings
from driver.tune.tuning_run import tune

Tune: TypeAlias = Callable[[TuneSettings, Listener], int]

_DEVICES: Final = 1
"""Two that measure at a time would share caches and the memory's bandwidth."""


def run_on_processor(args: argparse.Namespace, target: Target, tune_with: Tune = tune) -> int:
    """Do it for a target without an accelerator; the exit code.

    Args:
        args: those of `tilefarm bench network`.
        target: what they name.
        tune_with: does what `tilefarm tune` does.
    """
    source = source_of(args)
    if args.throughput is not None:
        _require_threads(args, target)
    forms = forms_of(source, target)
    network = forms.network
    searched = sum(has_space(workload, target) for workload, _ in network.workloads())
    with tempfile.TemporaryDirectory(prefix="tilefarm-network-") as folder:
        out = Path(folder) / "out"
        files = model_files(args.model, args.calibrate, Path(folder))
        settings = TuneSettings(
            model=files.model,
            calibrate=files.calibration,
            extents=source.extents,
            quantization=source.how,
            out=out,
            trials=max(1, args.trials * searched),
            seed=args.seed,
            farm=FarmSettings(target=args.target, devices=_DEVICES, workers=args.jobs, ray=False),
        )
        heard = _Heard(None if args.json else PlainLines(sys.stderr))
        if code := tune_with(settings, heard):
            return code
        if args.html is not None:
            _copy(out / "report.html", args.html)
        several = None
        if args.throughput is not None:
            several = samples_on_threads(
                read_program(out / "program"), forms.data.inputs, Path(folder)
            )
    summary = heard.summary
    if summary is None or summary.profile is None or summary.accuracy is None:
        raise InfraError("the run ended without a profile of its program")
    found = (summary, summary.profile, summary.accuracy)
    lines, throughput = list(processor_tables(*found)), {}
    if several is not None:
        lines += ["", *lines_of_threads(several)]
        throughput = {"throughput": several.document()}
    tell(args, lines, lambda: processor_document(*found) | throughput)
    return 1 if several is not None and several.differing else 0


def _require_threads(args: argparse.Namespace, target: Target) -> None:
    """Raises SettingsError where samples in flight are not as many as the target's threads."""
    threads = target.model.threads
    if threads == 1:
        raise SettingsError(
            f"--throughput: {target.name} is one thread, on which samples wait for each other",
            f"--target {target.name}@2",
        )
    if args.throughput not in (0, threads):
        raise SettingsError(
            f"--throughput {args.throughput}: {plural(threads, 'thread')} run a sample each",
            f"--throughput without a number, or --target with @{args.throughput}",
        )


class _Heard:
    """Hears a run and keeps what it ends with; `shows` what comes before."""

    def __init__(self, shows: Listener | None) -> None:
        self._shows = shows
        self.summary: RunSummary | None = None

    def __call__(self, event: Shown | Span) -> None:
        if isinstance(event, Ended):
            self.summary = event.summary
        elif self._shows is not None:
            self._shows(event)


def processor_tables(summary: RunSummary, profile: Profile, accuracy: Accuracy) -> Iterator[str]:
    """Layers, operators, and what they add up to."""
    operators = {layer.name: layer.operator for layer in summary.layers}
    titles = ("step", "operator", "median", "spread", "share", "GMAC/s", "of peak")
    yield from text_table(
        titles, [_row(profile, layer, operators.get(layer.layer, "")) for layer in profile.layers]
    )
    yield ""
    yield from text_table(
        ("operator", "steps", "time", "share", "GMAC/s"), list(_by_operator(profile, operators))
    )
    yield ""
    failed = sum(trial.status != "ok" for trial in summary.trials)
    yield f"{against_the_whole(profile)}; {plural(len(summary.trials), 'trial')}, {failed} failed"
    seconds = summary.network_seconds
    if seconds is not None:
        speed = gmacs(_speed(_macs(summary), seconds))
        yield (
            f"{microseconds(seconds)} as one program, {speed} GMAC/s; {accuracy.differing} of"
            f" {plural(accuracy.images, 'sample')} differ from the reference"
        )
    if profile.peak:
        yield f"peak: {gmacs(profile.peak)} GMAC/s, measured beside the layers"
    if profile.remark:
        yield profile.remark


def processor_document(summary: RunSummary, profile: Profile, accuracy: Accuracy) -> dict[str, Any]:
    """Everything as JSON can say it, the points of the schedules included."""
    layers = {layer.name: layer for layer in summary.layers}
    told = profile_document(profile)
    seconds, macs = summary.network_seconds, _macs(summary)
    steps = [
        {
            "name": row["layer"],
            "workload": row["kernel"],
            "operator": layers[row["layer"]].operator if row["layer"] in layers else "",
            **{key: value for key, value in row.items() if key not in _NOT_TOLD},
        }
        for row in told["layers"]
    ]
    return {
        "network": summary.run.title,
        "target": summary.run.target,
        "seconds": profile.layers_cost,
        "trials": len(summary.trials),
        "failed": sum(trial.status != "ok" for trial in summary.trials),
        "peak_macs_per_second": profile.peak,
        "program": {
            "seconds": seconds,
            "macs": macs,
            "macs_per_second": _speed(macs, seconds),
            "differing": accuracy.differing,
            "samples": accuracy.images,
            "arena_nbytes": summary.arena.nbytes if summary.arena else None,
        },
        "steps": steps,
        "points": {row.name: dict(row.best_point) for row in summary.workloads},
    }


_NOT_TOLD: Final = frozenset({"layer", "kernel", "entry", "predicted_cycles", "ratio"})
"""Of a layer's profile: other names, and what only accelerators have."""


def _macs(summary: RunSummary) -> int:
    return sum(layer.macs for layer in summary.layers)


def _speed(macs: int, seconds: float | None) -> float | None:
    return macs / seconds if macs and seconds else None


def _row(profile: Profile, layer: LayerTime, operator: str) -> tuple[str, ...]:
    time = layer.took.wall_time
    return (
        layer.layer,
        operator,
        "-" if layer.cost is None else microseconds(layer.cost),
        share(None if time is None else time.spread),
        share(layer.share),
        gmacs(profile.speed(layer)),
        share(profile.of_peak(layer)),
    )


def _by_operator(profile: Profile, operators: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Seconds by operator, in the order in which they come first."""
    whole = profile.layers_cost or 1.0
    for operator in dict.fromkeys(operators.get(each.layer, "") for each in profile.layers):
        layers = [each for each in profile.layers if operators.get(each.layer, "") == operator]
        seconds = sum(each.cost or 0.0 for each in layers)
        speed = _speed(sum(each.macs for each in layers), seconds)
        yield (
            operator,
            str(len(layers)),
            microseconds(seconds),
            share(seconds / whole),
            gmacs(speed),
        )


def _copy(report: Path, to: Path) -> None:
    """The run's report, to the file that was named for it."""
    try:
        to.write_bytes(report.read_bytes())
    except OSError as error:
        raise unwritable(to, error, "name a file in a folder that there is") from None
