"""`tilefarm vta dump`: compile a layer, and write what it runs as program files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilefarm.errors import DataError, OutputError, SettingsError

if TYPE_CHECKING:
    from tilefarm.target import Target
    from tilefarm.trace import Trace
    from tilefarm.workload import Workload

    from compile_worker.space import Generated


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    layer = parser.add_mutually_exclusive_group(required=True)
    layer.add_argument("--conv", metavar="CI,CO,H,W,K,STRIDE,PAD", help="a convolution")
    layer.add_argument("--model", type=Path, metavar="MODEL.onnx", help="the layers of a network")
    option("--calibrate", type=Path, metavar="DATA.npz", help="of the network: as for tune")
    option("--workload", metavar="NAME", help="of the network's layers this one; part of its name")
    schedule = parser.add_mutually_exclusive_group()
    schedule.add_argument("--point", type=Path, metavar="FILE.json", help="values of the space")
    schedule.add_argument("--trace", type=Path, metavar="FILE.json", help="schedule primitives")
    schedule.add_argument(
        "--predicted", action="store_true", help="the schedule that is best by prediction"
    )
    option("--target", default="sim", metavar="NAME|FILE.json", help="(default: sim)")
    option("--seed", type=int, default=0, metavar="N", help="of the inputs (default: 0)")
    option("--out", type=Path, required=True, metavar="DIR", help="folder for the program files")
    parser.epilog = (
        "examples:\n"
        "  tilefarm vta dump --conv 64,64,56,56,3,1,1 --predicted --out c2\n"
        "  tilefarm vta dump --model net.onnx --calibrate data.npz --out layers\n"
        "Without an option the schedule is the plain one. A program has the inputs in its memory,\n"
        "the result that was compared with the reference, and the cycles."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from tilefarm.target import load_target

    from device_server.library import VtaLibrary
    from device_server.program import write_program
    from driver.vta.recording import record_workload

    target = load_target(args.target)
    layers = dict(_layers(args, target))
    folder = _folder(args.out)
    library = VtaLibrary()
    for name, workload in layers.items():
        trace = _schedule(args, workload, target)
        programs = record_workload(library, workload, trace, target, seed=args.seed, name=name)
        for program in programs:
            file = folder / f"{program.name}.npz"
            write_program(file, program)
            count = len(program.instructions)
            print(f"{file}: {count} instructions, {program.cycles} cycles", flush=True)
    return 0


def _layers(args: argparse.Namespace, target: Target) -> Iterator[tuple[str, Workload]]:
    """The layers that the options mean, by the names of their files."""
    from driver.vta.layers import Convolution

    if args.conv is not None:
        layer = Convolution.parse(args.conv)
        yield "conv_" + "_".join(args.conv.replace(" ", "").split(",")), layer.workload(target)
        return
    if args.calibrate is None:
        raise SettingsError("--model needs --calibrate", "the data that decide the int8 scales")
    found = {w.name: w for w in _network_layers(args.model, args.calibrate, target)}
    chosen = {name: w for name, w in found.items() if args.workload in (None, name)}
    if not chosen:
        chosen = {name: w for name, w in found.items() if args.workload in name}
    if not chosen:
        known = ", ".join(found) or "none"
        raise SettingsError(f"--workload {args.workload}: no such layer", f"one of {known}")
    yield from chosen.items()


def _network_layers(model: Path, calibration: Path, target: Target) -> list[Workload]:
    """The distinct layers of a network that run on the accelerator, in order of first use."""
    from driver.frontend import import_model, load_data
    from driver.graph import partition, quantize

    graph = import_model(model)
    quantized = quantize(graph, load_data(calibration, graph).inputs)
    return [workload for workload, _ in partition(quantized, target).workloads()]


def _schedule(args: argparse.Namespace, workload: Workload, target: Target) -> Trace:
    from compile_worker.space import generate
    from driver.vta.layers import predicted_best

    if args.trace is not None:
        return _trace(args.trace)
    try:
        generated = generate(workload, target)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if args.predicted:
        return generated.trace(predicted_best(generated, args.seed))
    if args.point is not None:
        return generated.trace(_point(args.point, generated))
    return generated.trace(dict(generated.space.default))


def _trace(path: Path) -> Trace:
    from tilefarm.trace import Trace

    try:
        return Trace.from_json(_text(path))
    except ValueError as error:
        raise DataError(f"{path}: not a trace: {error}") from None


def _point(path: Path, generated: Generated) -> dict[str, int]:
    """The valid point of a file; variables that it leaves out have their plain values."""
    from tilefarm.space import violations

    try:
        document = json.loads(_text(path))
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}") from None
    if not isinstance(document, dict) or not all(type(v) is int for v in document.values()):
        raise DataError(f"{path}: a point is a JSON object of integers")
    space = generated.space
    unknown = sorted(document.keys() - {v.name for v in space.variables})
    if unknown:
        raise DataError(f"{path}: {unknown[0]!r} is no variable of {space.name}")
    plain = dict(space.default)
    tunables = {v.name: document.get(v.name, plain[v.name]) for v in space.tunables}
    point = generated.completed(tunables)
    broken = violations(space, point)
    if broken:
        raise DataError(f"{path}: the point breaks {', '.join(broken)}")
    return point


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from None


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {path}: {error.strerror or error}") from None
    return path
