"""Whole networks: samples in flight by the busiest engine's work, times as planned, peaks.

Schedules are those that are predicted to be best, as none is searched; on the processor the plain
ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.errors import SettingsError

from driver.benchmarks.accelerated_samples import accelerated_samples
from driver.benchmarks.figures import Figure
from driver.benchmarks.processor.networks import random_samples
from driver.benchmarks.samples_on_threads import samples_on_threads
from driver.network import Forms, NetworkSource, forms_of, import_model
from driver.program.arena import plan_arena
from driver.program.simulated import assembled
from driver.program.vta.schedules import PLAIN, PREDICTED, Choice, trace_of
from driver.targets import usable_target

IN_FLIGHT: Final[Mapping[str, str]] = {
    "VWW": "vww_int8_qdq",
    "SqueezeNet": "zoo:squeezenet",
    "transformer": "sd_block_tiny_8x8x64",
}
"""Networks with layers of both engines, by name: of the zoo's folder, or coming with tilefarm."""
PEAKS: Final = ("zoo:digits", "zoo:squeezenet", "zoo:resnet18", "zoo:mobilenet_v2")
ACCELERATORS: Final = ("sim", "sim-ultra96")
THREADS: Final = "cpu@2"
_BOUND: Final = 1.10
_OFF_SIMULATED, _OFF_THREADS = 0.03, 0.10


@dataclass(frozen=True, slots=True)
class _Model:
    """A network and, where it needs some, random data that its ranges come from."""

    name: str
    model: str
    calibration: Path | None

    def forms(self, target: str) -> Forms:
        source = NetworkSource(model=self.model, calibration=self.calibration)
        return forms_of(source, usable_target(target))


def figures(zoo: Path) -> list[Figure]:
    """Of networks that come with tilefarm, and of those of the zoo's folder.

    Raises:
        SettingsError: a network is not in the folder.
    """
    with tempfile.TemporaryDirectory(prefix="tilefarm-networks-") as scratch:
        return [*_all(zoo, Path(scratch))]


def _all(zoo: Path, scratch: Path) -> Iterator[Figure]:
    models = [*_models(zoo, scratch)]
    for model in models:
        for target in ACCELERATORS:
            yield from _accelerated(model, target)
    for model in models:
        yield from _on_threads(model, scratch)
    yield from _peaks(models)


def _models(zoo: Path, scratch: Path) -> Iterator[_Model]:
    for name, model in IN_FLIGHT.items():
        if model.startswith("zoo:"):
            yield _Model(name, model, None)
        else:
            file = zoo / "models" / f"{model}.onnx"
            if not file.is_file():
                raise SettingsError(f"{file} is not there", "--zoo FOLDER, with models/ in it")
            graph = import_model(file)
            data = None if graph.ranges else random_samples(graph, scratch / f"{model}.npz")
            yield _Model(name, str(file), data)


def _accelerated(model: _Model, target: str) -> Iterator[Figure]:
    forms = model.forms(target)
    network = plan_arena(forms.network, {}, keeps_runs=True).network
    traces = {
        work: trace_of(Choice(trace=PREDICTED), work, network.target)
        for work, _ in network.workloads()
    }
    found = accelerated_samples(network, traces, forms.data.inputs)
    where = f"{model.name}, {target}"
    yield Figure(name=f"{where}, samples in flight", value=found.made.in_flight, unit="")
    yield Figure(name=f"{where}, by the bound", value=found.run.gap, unit="x", goal=_BOUND)
    yield Figure(name=f"{where}, by one at a time", value=found.gain, unit="x")
    off = abs(found.run.off)
    yield Figure(name=f"{where}, planned time off", value=off, unit="", goal=_OFF_SIMULATED)
    yield Figure(name=f"{where}, samples that differ", value=found.differing, unit="", goal=0)


def _on_threads(model: _Model, scratch: Path) -> Iterator[Figure]:
    where = f"{model.name}, {THREADS}"
    forms = model.forms(THREADS)
    network = forms.network
    traces = {
        work: trace_of(Choice(trace=PLAIN), work, network.target) for work, _ in network.workloads()
    }
    folder = scratch / model.name
    folder.mkdir()
    found = samples_on_threads(assembled(network, traces), forms.data.inputs, folder)
    yield Figure(name=f"{where}, by the bound", value=found.gap, unit="x", goal=_BOUND)
    off = abs(found.off)
    yield Figure(name=f"{where}, planned time off", value=off, unit="", goal=_OFF_THREADS)
    yield Figure(name=f"{where}, samples that differ", value=found.differing, unit="", goal=0)


def _peaks(models: list[_Model]) -> Iterator[Figure]:
    """Arenas by those in the given order, of several networks on an accelerator."""
    others = [_Model(name, name, None) for name in PEAKS]
    arenas = [plan_arena(each.forms("sim").network, {}) for each in (*others, *models)]
    ratios = [each.nbytes / each.picture.given_nbytes for each in arenas]
    bounds = [each.nbytes / each.picture.bound_nbytes for each in arenas]
    yield Figure(name="peak by the given order's, worst", value=max(ratios), unit="x", goal=1.0)
    yield Figure(name="peak by its bound, worst", value=max(bounds), unit="x")
