"""`tilefarm check`: every layer against the float network, the reference and the device."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefarm.clock import SystemClock
from tilefarm.plural import form, plural
from tilefarm.printable import printable_lines
from tilefarm.quiet import quiet_libraries
from tilefarm.target import Target

from driver.commands.options.farm import add_device_options, farm_settings
from driver.commands.options.networks import MODEL, SEEDED, add_network_options, source_of
from driver.commands.options.shared import add_number, add_target

if TYPE_CHECKING:
    from driver.commands.validation.checked_steps import StepCheck
    from driver.commands.validation.checking import Checked
    from driver.commands.validation.step_executor import StepExecutor
    from driver.farm.settings import FarmSettings
    from driver.network import Dataset, Forms, Noise

_IMAGES = 2
EXIT_DIFFERS = 1

_EPILOG = """\
examples:
  tilefarm check zoo:digits
  tilefarm check net.onnx --data data.npz --images 8
  tilefarm check net.onnx --data data.npz --out tilefarm-out/net --json
  tilefarm check net.onnx --data data.npz --target pynq-z1 --tracker farm:9190 --token-file t

Two comparisons, a row a step. The float network with the integer reference: signal to quantization
noise in dB and the largest difference, where the step's result is a tensor of the file. The
integer reference with the device, bit for bit, on the reference's own operands; with the plain
schedules, or with --out those that a run found best. Last the whole program. The device is the
simulator, or with --target cpu this machine's processor, step by step; with --tracker, --runtime
or --devices those of a farm, of a VTA library, or so many here, which get all steps at once. The
first step that differs is named with its nodes of the file and the tile: n, c-block, h, w, row of
the batch, lane.

exit codes: 0 all bits agree; 1 a step or the program differs, or does not compile or run;
2 something given cannot be used; 3 no device
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("model", metavar=MODEL, help="a network")
    option("--data", type=Path, metavar="DATA.npz", help="samples (default: those that calibrate)")
    option("--out", dest="best_of", type=Path, metavar="RUN", help="a run, for its best schedules")
    add_number(parser, "images", "samples to compare", default=_IMAGES)
    add_target(parser)
    option("--json", action="store_true", help="one JSON document")
    add_network_options(parser)
    add_device_options(parser, "step")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    settings = farm_settings(args)
    quiet_libraries()
    from driver.network import forms_of
    from driver.targets import playable_target, usable_target

    target = (usable_target if settings.tracker else playable_target)(args.target)
    args.calibrate = args.calibrate or args.data
    forms = forms_of(source_of(args), target)
    if forms.is_seeded:
        print(SEEDED, file=sys.stderr)
    data = forms.samples(args.data, args.images)
    with _executor(args, settings, target) as executor:
        found = _checked(args, forms, data, executor)
    return 0 if found.is_right else EXIT_DIFFERS


@contextmanager
def _executor(
    args: argparse.Namespace, settings: FarmSettings, target: Target
) -> Iterator[StepExecutor]:
    """Where steps are run: in the sandbox, unless an option is about devices."""
    from driver.commands.validation.step_executor import SandboxExecutor, on_devices
    from driver.farm.scratch import scratch_folder

    if settings.tracker is None and settings.runtime is None and args.devices is None:
        yield SandboxExecutor(target)
        return
    with (
        scratch_folder() as folder,
        on_devices(settings, target, folder, SystemClock()) as executor,
    ):
        yield executor


def _checked(
    args: argparse.Namespace, forms: Forms, data: Dataset, executor: StepExecutor
) -> Checked:
    """The comparison, printed as it goes on, or as a document."""
    from driver.commands.validation.checking import checked

    if args.json:
        found = checked(forms, data, best_of=args.best_of, executor=executor)
        how = {"quantization": str(forms.how), "notes": list(forms.notes)}
        print(json.dumps({**_document(found), **how}))
        return found
    counts = forms.network.target.has_accelerator
    print(*forms.quantized_words(), "", head(counts=counts), sep="\n")

    def watch(step: StepCheck, noise: Noise | None) -> None:
        print(row(step, noise, counts=counts), flush=True)

    found = checked(forms, data, best_of=args.best_of, executor=executor, watch=watch)
    for line in verdict(found):
        print(printable_lines(line))
    return found


_HEAD = f"{'step':32} {'operator':18} place {'SQNR':>6} {'largest':>10}"
_CYCLES = f" {'cycles':>10}"


def head(*, counts: bool) -> str:
    """The titles of the table; cycles where the device `counts` them."""
    return f"{_HEAD}{_CYCLES if counts else ''}  device"


def row(step: StepCheck, noise: Noise | None, *, counts: bool = True) -> str:
    """One step of the table, which is at most 100 columns wide."""
    cycles = f" {step.cycles or '':>10}" if counts else ""
    return (
        f"{step.name[:32]:32} {step.operator[:18]:18} {step.place[:3]:5}"
        f" {_decibels(noise.ratio_db) if noise else '':>6}"
        f" {f'{noise.largest:.4g}' if noise else '':>10}"
        f"{cycles}  {'equal' if step.is_right else 'DIFFERS'}"
    )


def verdict(found: Checked) -> Iterator[str]:
    """What the table adds up to."""
    yield ""
    first = found.first_wrong
    if first is not None:
        yield f"the first step that differs: {first.name} ({first.operator}), {first.workload}"
        nodes = found.made_from.get(first.result, ())
        if nodes:
            yield f"  made from {', '.join(f'{node.name} ({node.operator})' for node in nodes)}"
        yield f"  {first.offence or first.failure}"
    yield f"the program as a whole, {plural(found.samples, 'sample')}: {found.whole}"
    right = sum(step.is_right for step in found.steps)
    steps = plural(len(found.steps), "step")
    yield f"{right} of {steps} {form(right, 'is', 'are')} bit for bit right"


def _decibels(ratio: float) -> str:
    return f"{ratio:.1f}" if math.isfinite(ratio) else "exact"


def _document(found: Checked) -> dict[str, Any]:
    steps = []
    for step in found.steps:
        noise = found.noise.get(step.result)
        finite = noise is not None and math.isfinite(noise.ratio_db)
        row = {
            **asdict(step),
            "right": step.is_right,
            "sqnr_db": noise.ratio_db if noise and finite else None,
            "largest": noise.largest if noise else None,
        }
        row["offence"] = asdict(step.offence) if step.offence else None
        steps.append(row)
    first = found.first_wrong
    nodes = found.made_from.get(first.result, ()) if first else ()
    return {
        "network": found.name,
        "samples": found.samples,
        "right": found.is_right,
        "first_wrong": first.name if first else None,
        "first_wrong_made_from": [asdict(node) for node in nodes],
        "program": found.whole,
        "steps": steps,
    }
