"""`tilefarm bench quantize`: how long it takes to make integers, beside the plainest way to.

Each network is imported and quantized as `tilefarm tune` does it by default, and by the plainest
way to integers of the same form: symmetric, ranges that cover every value, every weight rounded to
the nearest, nothing fitted or corrected, no other way tried. The two take turns, so that whatever
else the machine does is shared by both; the least of several turns counts.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilefarm.errors import DataError, SettingsError
from tilefarm.target import Target

from driver.benchmarks.command_line import add_gate, gated
from driver.benchmarks.figures import Figure, figure_table
from driver.benchmarks.zoo.attempt import in_reals
from driver.benchmarks.zoo.recipes import RECIPES
from driver.benchmarks.zoo.samples import RandomInputs, read
from driver.commands.options.shared import add_number, add_target
from driver.environment import machine
from driver.network import (
    AS_USUAL,
    DEFAULT_METHOD,
    ZOO_CAPTIONS,
    ZOO_DIGITS,
    ZOO_PREFIX,
    Arrays,
    Quantization,
    dataset_of,
    estimated_cycles,
    fit_quantization,
    import_model,
    is_built_in,
    load_data,
    model_files,
    partition_network,
    random_images,
)
from driver.targets import accelerated_target

_SAMPLES: Final = 32
_TURNS: Final = 7
_MOST_RATIO: Final = 1.2
_MOST_CYCLES: Final = 1.01
_LARGEST: Final = "zoo:mobilenet_v2"
_MOST_SECONDS: Final = 60.0
_NEED_NOTHING: Final = ("zoo:resnet18", "zoo:squeezenet", "resnet8_f32_float")
"""Networks with so little noise that to refine layer after layer is not worth its time. So are
smaller ones, such as `zoo:digits`, whose hundredths of a second are those of Python."""
_BUILT_IN: Final = ("zoo:digits", "zoo:resnet18", "zoo:squeezenet", _LARGEST)
_TRAINED: Final = tuple(name for name, recipe in RECIPES.items() if recipe.calibrate)

_ON_PROCESSORS: Final = "tilefarm bench zoo --target cpu"
"""Has the accuracy of its integers. They are made in one way, so no two can be compared."""

PLAINEST: Final = Quantization(
    calibration=DEFAULT_METHOD,
    activations="symmetric",
    equalize=False,
    share_shifts=False,
    correct_bias=False,
    fit_weights=False,
    wide=(),
    wide_activations=(),
)
"""Every decision made, for the least work."""

_EPILOG: Final = f"""\
examples:
  tilefarm bench quantize
  tilefarm bench quantize --data zoo --gate
  tilefarm bench quantize {_LARGEST} --samples 8 --turns 1 --json

Import and quantization are timed, reading the data is not. Networks of `zoo:` with random weights
are calibrated on --samples random pictures, `zoo:{ZOO_DIGITS}` on its own data, those of --data on
the samples of `tilefarm bench zoo`. Seconds are those of the clock and, below, of the processor.

Goals: a network that needs nothing more ({", ".join(_NEED_NOTHING)})
takes at most {_MOST_RATIO:g} times as much of the processor as the plainest way (whatever else the
machine does) and {_MOST_CYCLES:g} times its estimated cycles on the target, and {_LARGEST} at most
{_MOST_SECONDS:g} seconds to quantize.

networks: {", ".join(f"{ZOO_PREFIX}{name}" for name in ZOO_CAPTIONS)};
with --data {", ".join(_TRAINED)}
exit codes: 0 done; 1 a goal is missed, with --gate; 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("names", nargs="*", metavar="NETWORK", help=f"(default: {' '.join(_BUILT_IN)}; all)")
    option("--data", type=Path, metavar="FOLDER", help="the folder of the zoo")
    add_target(parser)
    add_number(parser, "samples", "random pictures to calibrate on", default=_SAMPLES, least=1)
    add_number(parser, "turns", "of each way, of which the least counts", default=_TURNS, least=1)
    add_gate(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    target = accelerated_target(args.target, on_processors=_ON_PROCESSORS)
    names = _names(args)
    rows: dict[str, Any] = {}
    measured: list[Figure] = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="tilefarm-quantize-") as folder:
            model, data = _files(name, args.data, args.samples, Path(folder))

            def quantized(how: Quantization, model: Path = model, data: Arrays = data) -> str:
                return str(fit_quantization(target, import_model(model), data, how).how)

            found = in_turns(quantized, args.turns, _both_clocks)
            cycles = cycles_ratio(target, model, data)
        figures = [*found.figures(name), _cycles_figure(name, cycles)]
        measured += figures
        rows[name] = {"how": found.how, "figures": [figure.row() for figure in figures]}
        if not args.json:
            samples = len(next(iter(data.values())))
            print(f"{name}, calibrated on {samples}: {found.how}")
            for line in figure_table(figures):
                print(f" {line}")
            print(flush=True)
    if args.json:
        print(json.dumps({"machine": machine(), "turns": args.turns, "networks": rows}))
    return gated(args, measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """What one quantization took."""

    wall: float
    processor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationTimes:
    """The least that each way took, and in words what the usual one was in the end."""

    plainest: Seconds
    usual: Seconds
    how: str

    def figures(self, name: str) -> Iterator[Figure]:
        """With the goals of that network."""
        most_ratio = _MOST_RATIO if name in _NEED_NOTHING else None
        most_seconds = _MOST_SECONDS if name == _LARGEST else None
        ratio = self.usual.wall / self.plainest.wall
        processor = self.usual.processor / self.plainest.processor
        yield Figure(name="plainest", value=self.plainest.wall, unit="s")
        yield Figure(name="by default", value=self.usual.wall, unit="s", goal=most_seconds)
        yield Figure(name="times as long", value=ratio, unit="")
        yield Figure(name="processor, plainest", value=self.plainest.processor, unit="s")
        yield Figure(name="processor, by default", value=self.usual.processor, unit="s")
        yield Figure(name="times as much", value=processor, unit="", goal=most_ratio)


def cycles_ratio(target: Target, model: Path, data: Arrays) -> float:
    """Estimated cycles by default, by those of the plainest way: see `driver.network.accuracy`."""
    usual, plainest = (
        estimated_cycles(
            partition_network(
                fit_quantization(target, import_model(model), data, how).quantized, target
            )
        )
        for how in (AS_USUAL, PLAINEST)
    )
    return usual / plainest


def _cycles_figure(name: str, ratio: float) -> Figure:
    goal = _MOST_CYCLES if name in _NEED_NOTHING else None
    return Figure(name="cycles, times as many", value=ratio, unit="", goal=goal)


def in_turns(
    quantized: Callable[[Quantization], str], turns: int, clocks: Callable[[], Seconds]
) -> QuantizationTimes:
    """The plainest way and the usual one, one after the other, so many times.

    Args:
        quantized: makes a network integers, and says in the end how.
        clocks: seconds since some moment.
    """
    taken: dict[Quantization, list[Seconds]] = {PLAINEST: [], AS_USUAL: []}
    said: dict[Quantization, str] = {}
    for _ in range(turns):
        for how, each in taken.items():
            before = clocks()
            said[how] = quantized(how)
            after = clocks()
            each.append(
                Seconds(
                    wall=after.wall - before.wall,
                    processor=after.processor - before.processor,
                )
            )
    return QuantizationTimes(
        plainest=_least(taken[PLAINEST]), usual=_least(taken[AS_USUAL]), how=said[AS_USUAL]
    )


def _least(taken: Sequence[Seconds]) -> Seconds:
    return Seconds(
        wall=min(each.wall for each in taken), processor=min(each.processor for each in taken)
    )


def _both_clocks() -> Seconds:
    return Seconds(wall=time.perf_counter(), processor=time.process_time())


def _names(args: argparse.Namespace) -> list[str]:
    """What to measure.

    Raises:
        SettingsError: there is no network of a name.
        DataError: it needs a folder that is not given.
    """
    known: Mapping[str, bool] = {
        f"{ZOO_PREFIX}{name}": False for name in ZOO_CAPTIONS
    } | dict.fromkeys(_TRAINED, True)
    for name in args.names:
        if name not in known:
            raise SettingsError(f"no network {name!r}", f"one of {', '.join(known)}")
        if known[name] and args.data is None:
            raise DataError(f"{name}: no --data", "--data FOLDER as `tilefarm bench zoo` takes it")
    return args.names or [*_BUILT_IN, *(_TRAINED if args.data is not None else ())]


def _files(name: str, folder: Path | None, samples: int, scratch: Path) -> tuple[Path, Arrays]:
    """The network's file and its calibration data.

    Raises:
        DataError: the folder lacks them.
    """
    if is_built_in(name):
        files = model_files(name, None, scratch)
        graph = import_model(files.model)
        if name == f"{ZOO_PREFIX}{ZOO_DIGITS}" and files.calibration is not None:
            return files.model, load_data(files.calibration, graph).inputs
        return files.model, dataset_of({"x": random_images(samples)}, graph, scratch).inputs
    recipe, model = RECIPES[name], (folder or scratch) / "models" / f"{name}.onnx"
    assert not isinstance(recipe.data, RandomInputs)
    if not model.is_file():
        raise DataError(f"no {model}", "--data FOLDER as `tilefarm bench zoo` takes it")
    data = model.parent.parent / "data"
    first = read(recipe.data, data).first(recipe.calibrate)
    return model, in_reals(first, recipe, import_model(model), data).inputs
