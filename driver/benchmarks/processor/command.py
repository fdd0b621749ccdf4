"""What `tilefarm bench processor` measures and says."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, log
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
from tilefarm.dtype import DType
from tilefarm.errors import InfraError, SettingsError
from tilefarm.processors import this_processor
from tilefarm.space import violations
from tilefarm.target import Target

from compile_worker.generated import Generated
from compile_worker.isa import isa_of
from compile_worker.space import generate
from driver.benchmarks.command_line import add_gate, gated, tell
from driver.benchmarks.figures import Figure, figure_table
from driver.benchmarks.processor.kernels import (
    Call,
    aligned,
    compiled,
    least_in_turns,
    turn_seconds,
)
from driver.benchmarks.processor.layers import (
    LAYERS,
    MOBILENET,
    RESNET18,
    as_in_networks,
    of_type,
)
from driver.benchmarks.processor.network_command import add_network_options, run_networks
from driver.benchmarks.processor.networks import NETWORKS
from driver.benchmarks.processor.onednn import OneDnn, OneDnnError
from driver.benchmarks.processor.peak import peak_call
from driver.commands.options.shared import add_number
from driver.environment import machine
from driver.network import QLinearLayer, run_workload, sample_inputs
from driver.report.terminal.text_table import text_table

_POINTS: Final = 16
_TURNS: Final = 20
_SEED: Final = 0
_TRY_SECONDS: Final = 0.02
_TURN_SECONDS: Final = 0.02
_FINALISTS: Final = 3
"""Schedules that take turns at last, beside the default."""

_DTYPES: Final = {"u8": DType.UINT8, "s8": DType.INT8}

_LEAST_MEAN: Final = 1.0
_LEAST_EACH: Final = 0.9
_LEAST_OF_PEAK: Final = 0.85
_MANY_PRODUCTS: Final = tuple(name for name in RESNET18 if name not in ("C4", "C7", "C10"))
"""The layers of 3x3 and 7x7, which multiply often enough to be held against the peak."""

_EPILOG: Final = f"""\
examples:
  tilefarm bench processor
  tilefarm bench processor --layers C2,C8,D7 --points 64
  tilefarm bench processor --data s8 --gate --json
  tilefarm bench processor --networks --zoo FOLDER
  tilefarm bench processor --networks resnet18,squeezenet --threads 1 --trials 200
  tilefarm bench processor --networks kws --zoo FOLDER --trials 448 --again 7000

Each layer is searched: its default schedule and --points others are compiled, compared bit for bit
with the reference and timed. The best ones then take turns with oneDNN's kernel for the layer.
Times are the least of the thread's, on one thread, caches warm, scales by channel and a zero point
included; on both sides tensors lie as the kernels like them best, and weights are packed. Zero is
0, as after a ReLU. Data of a sign that the processor's instruction does not take are moved by 128
with their zero points, as in networks. oneDNN is measured where its library is installed. Sums are
exact here; oneDNN's may saturate where a processor has no VNNI. Products are those of the
definition: where filtering is minimal, or zeros around an image are skipped, fewer are multiplied,
and speed may be above the peak.

Goals: over ResNet-18's convolutions a geometric mean of at least {_LEAST_MEAN:g} times oneDNN's
speed, none below {_LEAST_EACH:g}, and those of 3x3 and 7x7 at {_LEAST_OF_PEAK:.0%} of the measured
peak of the dot-product instruction; depthwise layers at least oneDNN's speed, in the mean.

Networks are tuned by `tilefarm tune`, and their programs take turns with ONNX Runtime, where that
is installed: its int8 (activations uint8, a scale a channel) and float32, with all that its
optimizer does, on as many threads. Goals: a geometric mean of 1.6 times its int8's speed, none
below 1, and 3 times its float32's; no answer unlike the reference; a program within a tenth of the
sum of its kernels; ResNet-18 from file to program in 10 minutes. With --again each network is
searched a second time, from nothing, and both programs take turns: those of equal searches at most
3% apart, that of a shorter one at most 5% behind the longer one's. `unlike ORT` has the elements
that ONNX Runtime computes otherwise from the same integers, its optimizer off.

layers: {" ".join(LAYERS)}
networks: {" ".join(NETWORKS)}
exit codes: 0 done; 1 a goal is missed, with --gate; 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("--layers", metavar="NAME,...", help="(default: all)")
    option("--data", choices=list(_DTYPES), default="u8", help="type of the data (default: u8)")
    add_number(parser, "points", "schedules that are tried of a layer", default=_POINTS, least=0)
    add_number(parser, "turns", "of the best kernel and oneDNN's", default=_TURNS, least=1)
    add_network_options(parser)
    add_gate(parser)
    parser.epilog = _EPILOG


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSeconds:
    """A layer: products, and the seconds of the default schedule, of the best one, and oneDNN's."""

    name: str
    products: int
    default_seconds: float
    seconds: float
    onednn_seconds: float | None
    schedule: Mapping[str, int]

    @property
    def speedup(self) -> float | None:
        """Times oneDNN's speed."""
        return self.onednn_seconds / self.seconds if self.onednn_seconds else None

    def document(self) -> dict[str, Any]:
        """What JSON can say."""
        return {
            "name": self.name,
            "products": self.products,
            "default_seconds": self.default_seconds,
            "seconds": self.seconds,
            "onednn_seconds": self.onednn_seconds,
            "times_onednn": self.speedup,
            "schedule": dict(self.schedule),
        }


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if args.networks is not None:
        return run_networks(args)
    target = this_processor()
    depth = isa_of(target.host).depth
    layers = {
        name: of_type(each, _DTYPES[args.data]).packed_by(depth)
        for name, each in _chosen(args.layers)
    }
    try:
        library, absent = OneDnn(), ""
    except OneDnnError as error:
        library, absent = None, str(error)
    with tempfile.TemporaryDirectory(prefix="tilefarm-processor-") as folder:
        bench = _Bench(target, Path(folder), library, args.points, args.turns)
        measured = []
        for name, layer in layers.items():
            measured.append(each := bench.measure(name, layer))
            print(f"{name}: {1e6 * each.seconds:.1f} us", file=sys.stderr, flush=True)
        peak = bench.peak_products()
    figures = list(figures_of(measured, peak))
    head = f"machine  {machine()}; {args.data} data, one thread"
    said = absent or f"oneDNN {library.version if library else ''}"
    isa = isa_of(target.host)
    dot = isa.matrix or isa.dot
    limit = f"peak     {peak / 1e9:.0f} GMAC/s of {dot}" if peak else "peak     not measured"

    def document() -> dict[str, Any]:
        return {
            "machine": machine(),
            "data": args.data,
            "onednn": absent or (library and library.version),
            "dot": dot,
            "peak_products_per_second": peak,
            "layers": [each.document() for each in measured],
            "figures": [figure.row() for figure in figures],
        }

    tell(args, (head, said, limit, *_table(measured, peak), *figure_table(figures)), document)
    return gated(args, figures)


class _Bench:
    """Measures layers on a target, beside a library if it is there."""

    def __init__(
        self, target: Target, folder: Path, library: OneDnn | None, points: int, turns: int
    ) -> None:
        self._target = target
        self._folder = folder
        self._library = library
        self._points = points
        self._turns = turns
        self._made = 0

    def measure(self, name: str, layer: QLinearLayer) -> LayerSeconds:
        """Search a layer, and let the best schedule take turns with the library's.

        Raises:
            InfraError: a kernel gives another answer than the reference.
        """
        workload = as_in_networks(layer, isa_of(self._target.host).data).workload()
        space = generate(workload, self._target)
        arrays = sample_inputs(workload, _SEED)
        (wanted,) = run_workload(workload, arrays).values()
        operands = {each: aligned(array) for each, array in arrays.items()}
        tried: list[tuple[float, int, Call, Mapping[str, int]]] = []
        for at, point in enumerate(_points(space, self._points)):
            call, found = compiled(
                workload, space.trace(point), self._target, operands, self._file()
            )
            call()
            if not np.array_equal(found, wanted):
                raise InfraError(f"{name}: {space.trace(point)} gives another answer than numpy")
            tried.append((turn_seconds(call, _TRY_SECONDS), at, call, point))
        default = tried[0]
        finalists = [default, *sorted(tried[1:], key=lambda each: each[:2])[:_FINALISTS]]
        calls = [each[2] for each in finalists]
        if self._library is not None:
            calls.append(self._library.convolution(layer))
        least = least_in_turns(calls, self._turns, _TURN_SECONDS)
        best = min(range(len(finalists)), key=least.__getitem__)
        schedule = finalists[best][3]
        return LayerSeconds(
            name=name,
            products=layer.products,
            default_seconds=least[0],
            seconds=least[best],
            onednn_seconds=least[-1] if self._library is not None else None,
            schedule={each.name: schedule[each.name] for each in space.space.tunables},
        )

    def peak_products(self) -> float | None:
        """Products a second of the dot-product instruction; None where there is none."""
        made = peak_call(self._target.host, self._file())
        if made is None:
            return None
        call, products = made
        return products / least_in_turns([call], self._turns, _TURN_SECONDS)[0]

    def _file(self) -> Path:
        self._made += 1
        return self._folder / f"kernel{self._made}.so"


def _points(space: Generated, count: int) -> Iterator[Mapping[str, int]]:
    """The default, and as many others as are wanted and found, the same every time."""
    yield space.default
    rng, seen = Random(_SEED), {tuple(space.default.items())}
    for _ in range(100 * count):
        if len(seen) > count:
            return
        drawn = {each.name: rng.choice(each.domain) for each in space.space.tunables}
        point = space.completed(drawn)
        if tuple(point.items()) not in seen and not violations(space.space, point):
            seen.add(tuple(point.items()))
            yield point


def figures_of(measured: Sequence[LayerSeconds], peak: float | None) -> Iterator[Figure]:
    """The figures with goals, as far as their layers were measured."""
    rows = {each.name: each for each in measured}
    speedups = {name: each.speedup for name, each in rows.items() if each.speedup is not None}
    for caption, names in (("ResNet-18", RESNET18), ("depthwise", MOBILENET)):
        found = [speedups[name] for name in names if name in speedups]
        if found:
            mean = exp(fsum(map(log, found)) / len(found))
            yield Figure(
                name=f"{caption}, times oneDNN, mean",
                value=mean,
                unit="x",
                goal=_LEAST_MEAN,
                more_is_better=True,
            )
    found = [speedups[name] for name in RESNET18 if name in speedups]
    if found:
        yield Figure(
            name="ResNet-18, times oneDNN, least",
            value=min(found),
            unit="x",
            goal=_LEAST_EACH,
            more_is_better=True,
        )
    large = [rows[name] for name in _MANY_PRODUCTS if name in rows]
    if large and peak:
        speed = sum(each.products for each in large) / fsum(each.seconds for each in large)
        yield Figure(
            name="3x3 and 7x7, of the peak",
            value=speed / peak,
            unit="",
            goal=_LEAST_OF_PEAK,
            more_is_better=True,
        )


def _table(measured: Sequence[LayerSeconds], peak: float | None) -> Iterator[str]:
    titles = ["layer", "MMAC", "default us", "us", "GMAC/s", "of peak", "oneDNN us", "x oneDNN"]
    rows = []
    for each in measured:
        speed = each.products / each.seconds
        theirs = each.onednn_seconds
        rows.append(
            [
                each.name,
                f"{each.products / 1e6:.1f}",
                f"{1e6 * each.default_seconds:.1f}",
                f"{1e6 * each.seconds:.1f}",
                f"{speed / 1e9:.0f}",
                f"{speed / peak:.0%}" if peak else "",
                f"{1e6 * theirs:.1f}" if theirs else "",
                f"{each.speedup:.2f}" if each.speedup else "",
            ]
        )
    yield from text_table(titles, rows)


def _chosen(names: str | None) -> list[tuple[str, QLinearLayer]]:
    if names is None:
        return list(LAYERS.items())
    unknown = [name for name in names.split(",") if name not in LAYERS]
    if unknown:
        raise SettingsError(
            f"--layers: no {', '.join(map(repr, unknown))}", f"some of {', '.join(LAYERS)}"
        )
    return [(name, LAYERS[name]) for name in names.split(",")]
