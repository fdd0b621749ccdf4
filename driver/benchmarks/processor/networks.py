"""Whole networks: tuned as anybody would, then in turns with ONNX Runtime on the same inputs.

file ─ tilefarm tune ─► program ─┐
     ├ as it is ───────────────► ├ turns: ours, its int8, its float32, ours, its int8 ...
     └ its own quantization ───► ┘        the least of each counts
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, fsum, log
from pathlib import Path
from typing import Any, Final

import numpy as np
from tilefarm.errors import InfraError, SettingsError, TilefarmError
from tilefarm.interpreter import python_command
from tilefarm.processors import THREADS

from driver.benchmarks.figures import Figure
from driver.benchmarks.processor.kernels import Call
from driver.benchmarks.processor.whole_programs import WholeProgram
from driver.network import Graph, import_model, load_data, model_files, seeded_data
from driver.program.deployed import read_program
from driver.program.onnx_runtime import LibraryNetwork, has_peer, quantized_by_peer
from driver.report.terminal.text_table import text_table

_TURN_SECONDS: Final = 0.05
_TURNS: Final = 20
_CALIBRATED_ON: Final = 8
"""Random samples, of networks that bring none: times do not depend on what they are."""
_SECONDS_PER_MINUTE: Final = 60

_LEAST_MEAN: Final = 1.6
_LEAST_EACH: Final = 1.0
_LEAST_OF_FLOATS: Final = 3.0
_MOST_APART: Final = 0.10
"""How far a program's time may be from the sum of its kernels'."""
_MOST_BETWEEN_EQUALS: Final = 0.03
_MOST_BEHIND_LONGER: Final = 0.05
"""How far programs of two searches may be apart: of equal ones, and of one with more trials."""


@dataclass(frozen=True, slots=True)
class ZooNetwork:
    """Where a network's files are.

    Attributes:
        model: what is tuned: `zoo:NAME`, or a file in the folder of data.
        floats: the file of the same network in float32, where `model` is quantized already.
    """

    model: str
    floats: str = ""


NETWORKS: Final[Mapping[str, ZooNetwork]] = {
    "resnet8": ZooNetwork("resnet8_int8_qdq", "resnet8_f32_float"),
    "kws": ZooNetwork("kws_int8_qdq", "kws_int8_float"),
    "vww": ZooNetwork("vww_int8_qdq", "vww_f32_float"),
    "mobilenet_v1": ZooNetwork(
        "mobilenet_v1_0.25_128_quant_qdq", "mobilenet_v1_0.25_128_quant_float"
    ),
    "resnet18": ZooNetwork("zoo:resnet18"),
    "resnet50": ZooNetwork("zoo:resnet50"),
    "mobilenet_v2": ZooNetwork("zoo:mobilenet_v2"),
    "squeezenet": ZooNetwork("zoo:squeezenet"),
    "transformer": ZooNetwork("sd_block_tiny_8x8x64"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSeconds:
    """A network's batch in seconds, or why there are none.

    Attributes:
        int8_seconds, float_seconds: ONNX Runtime's; None where it is not there, or takes it not.
        differing: samples whose answer is not the reference's.
        by_kernels: the program's time by the sum of its kernels' on the device.
        unlike: elements that ONNX Runtime computes otherwise without its optimizer, of `elements`;
            None where it was not given the same integers.
        tuned_seconds: from the file to the program.
        again_seconds: of another search's program, where one is asked for.
    """

    name: str
    threads: int
    seconds: float | None = None
    int8_seconds: float | None = None
    float_seconds: float | None = None
    differing: int = 0
    by_kernels: float | None = None
    unlike: int | None = None
    elements: int = 0
    tuned_seconds: float = 0.0
    again_seconds: float | None = None
    why: str = ""

    @property
    def times_int8(self) -> float | None:
        """Times the speed of ONNX Runtime's int8."""
        return _ratio(self.int8_seconds, self.seconds)

    @property
    def times_floats(self) -> float | None:
        """Times the speed of ONNX Runtime's float32."""
        return _ratio(self.float_seconds, self.seconds)

    @property
    def behind_again(self) -> float | None:
        """By how much longer than the other search's program it takes; below 0 if it is faster."""
        ratio = _ratio(self.seconds, self.again_seconds)
        return None if ratio is None else ratio - 1

    def document(self) -> dict[str, Any]:
        """What JSON can say."""
        speeds = {"times_int8": self.times_int8, "times_floats": self.times_floats}
        return asdict(self) | speeds


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkBench:
    """How networks are measured.

    Attributes:
        folder: for what is made on the way.
        zoo: the folder of data with files under `models`; None: there is none.
        trials: of each search.
        again: of another search of each network, whose program takes turns too; None: there is no
            other.
    """

    folder: Path
    zoo: Path | None
    trials: int
    again: int | None = None
    say: Callable[[str], None]

    def measure(self, name: str, threads: int) -> NetworkSeconds:
        """Tune a network and let its program take turns with ONNX Runtime."""
        try:
            return self._measured(name, threads)
        except (TilefarmError, OSError) as error:
            why = error.what if isinstance(error, TilefarmError) else str(error)
            return NetworkSeconds(name=name, threads=threads, why=why)

    def _measured(self, name: str, threads: int) -> NetworkSeconds:
        folder = self.folder / f"{name}-{threads}"
        folder.mkdir(parents=True, exist_ok=True)
        files = model_files(self._model(NETWORKS[name].model), None, folder / "zoo")
        graph = import_model(files.model)
        calibration = files.calibration
        if calibration is None and not graph.ranges:
            calibration = random_samples(graph, folder / "samples.npz")
        began = time.monotonic()
        summary = self._tuned(files.model, calibration, threads, folder / "out", self.trials)
        took = time.monotonic() - began
        if self.again:
            self._tuned(files.model, calibration, threads, folder / "again", self.again)
        if calibration is None:
            data = seeded_data(graph, graph.batch)
        else:
            data = load_data(calibration, graph)
        inputs = {i.name: np.asarray(data.inputs[i.name], np.float32) for i in graph.inputs}
        programs = {
            name: WholeProgram(read_program(folder / out / "program"), inputs, folder / f"{out}.so")
            for name, out in (("ours", "out"), ("again", "again"))
            if (folder / out).exists()
        }
        peers = {}
        if has_peer():
            int8 = files.model if graph.ranges else folder / "int8.onnx"
            if not graph.ranges:
                quantized_by_peer(files.model, graph, data.inputs, int8, is_symmetric=False)
            floats = self._model(NETWORKS[name].floats) if graph.ranges else files.model
            peers = _peers(graph, inputs, int8, Path(floats), threads)
        try:
            calls = {name: each.call for name, each in (programs | peers).items()}
            least = least_wall_seconds(list(calls.values()), _TURNS, _TURN_SECONDS)
            found = dict(zip(calls, least, strict=True))
            unlike, elements = None, 0
            if has_peer() and graph.ranges:
                plain = LibraryNetwork(
                    files.model, graph, inputs, threads=threads, is_optimized=False
                ).outputs()
                programs["ours"].call()
                unlike, elements = _unlike(programs["ours"].outputs(), plain)
        finally:
            for program in programs.values():
                program.close()
        return NetworkSeconds(
            name=name,
            threads=threads,
            seconds=found["ours"],
            int8_seconds=found.get("int8"),
            float_seconds=found.get("float32"),
            differing=summary["accuracy"]["differing"],
            by_kernels=summary["network_by_kernels"],
            unlike=unlike,
            elements=elements,
            tuned_seconds=took,
            again_seconds=found.get("again"),
        )

    def _model(self, name: str) -> str:
        """A model of ours by its name, another one by its path.

        Raises:
            SettingsError: its file is not there.
        """
        if name.startswith("zoo:"):
            return name
        path = None if self.zoo is None else self.zoo / "models" / f"{name}.onnx"
        if path is None or not path.is_file():
            where = path or f"{name}.onnx"
            raise SettingsError(f"{where} is not there", "--zoo FOLDER")
        return str(path)

    def _tuned(
        self, model: Path, calibration: Path | None, threads: int, out: Path, trials: int
    ) -> dict[str, Any]:
        """The summary of a search in a process of its own.

        Raises:
            InfraError: it failed.
        """
        target = "cpu" if threads == 1 else f"cpu{THREADS}{threads}"
        words = ["--target", target, "--no-ray", "--devices", "1", "--out", str(out)]
        words += ["--trials", str(trials)]
        words += ["--calibrate", str(calibration)] if calibration else []
        self.say(f"tune {model.name} for {target}, {trials} trials")
        done = subprocess.run(
            python_command("-m", "driver.cli", "tune", str(model), *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            said = [line for line in done.stdout.splitlines() if line.strip()]
            raise InfraError(f"tune ends with {done.returncode}: {' '.join(said[-2:])}")
        summary: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
        return summary


def least_wall_seconds(calls: Sequence[Call], turns: int, seconds: float) -> list[float]:
    """The least wall time of each call; they take turns, so that what disturbs one disturbs all.

    Unlike time of the thread it counts for programs whose threads wait for one another.
    """
    least = [float("inf")] * len(calls)
    for _ in range(turns):
        for at, call in enumerate(calls):
            end = time.monotonic() + seconds
            while True:
                before = time.perf_counter_ns()
                call()
                least[at] = min(least[at], 1e-9 * (time.perf_counter_ns() - before))
                if time.monotonic() >= end:
                    break
    return least


def _peers(
    graph: Graph, inputs: Mapping[str, Any], int8: Path, floats: Path, threads: int
) -> dict[str, LibraryNetwork]:
    paths = {"int8": int8, "float32": floats}
    return {
        kind: LibraryNetwork(path, graph, inputs, threads=threads) for kind, path in paths.items()
    }


def random_samples(graph: Graph, to: Path) -> Path:
    """Write random inputs in the layout of the model's file."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        i.name: rng.standard_normal((_CALIBRATED_ON, *i.given_shape[1:])).astype(np.float32)
        for i in graph.inputs
    }
    np.savez(to, **arrays)
    return to


def _unlike(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> tuple[int, int]:
    """How many elements differ, of how many."""
    differing = sum(
        int((ours[name].reshape(-1) != theirs[name].reshape(-1)).sum()) for name in ours
    )
    return differing, sum(each.size for each in ours.values())


def network_figures(
    measured: Sequence[NetworkSeconds], *, longer: bool = False
) -> Iterator[Figure]:
    """The figures with goals, as far as networks were measured.

    Args:
        longer: the other search of each network had more trials.
    """
    for threads in sorted({each.threads for each in measured}):
        rows = [each for each in measured if each.threads == threads]
        words = f"{threads} thread{'s' if threads > 1 else ''}"
        yield from _speeds([each.times_int8 for each in rows], f"ONNX Runtime int8, {words}")
        floats = [each.times_floats for each in rows if each.times_floats]
        if floats:
            yield _at_least(
                f"times ONNX Runtime float32, {words}, mean", _mean(floats), _LEAST_OF_FLOATS
            )
    done = [each for each in measured if each.seconds]
    if done:
        yield Figure(
            name="samples unlike the reference",
            value=float(sum(each.differing for each in done)),
            unit="",
            goal=0,
        )
    apart = [abs(each.by_kernels - 1) for each in done if each.by_kernels]
    if apart:
        yield Figure(
            name="program against the sum of its kernels, furthest",
            value=max(apart),
            unit="",
            goal=_MOST_APART,
        )
    yield from _between_searches([each.behind_again for each in done], longer)
    resnet18 = [each.tuned_seconds for each in done if each.name == "resnet18"]
    if resnet18:
        minutes = max(resnet18) / _SECONDS_PER_MINUTE
        yield Figure(name="ResNet-18, file to program", value=minutes, unit="min", goal=10)


def _between_searches(behind: Sequence[float | None], longer: bool) -> Iterator[Figure]:
    found = [each for each in behind if each is not None]
    if found and longer:
        name, value, goal = "behind the longer search", max(found), _MOST_BEHIND_LONGER
    elif found:
        name, value = "the same search twice, furthest apart", max(map(abs, found))
        goal = _MOST_BETWEEN_EQUALS
    else:
        return
    yield Figure(name=name, value=value, unit="", goal=goal)


def _speeds(found: Sequence[float | None], whom: str) -> Iterator[Figure]:
    speeds = [each for each in found if each]
    if speeds:
        yield _at_least(f"times {whom}, mean", _mean(speeds), _LEAST_MEAN)
        yield _at_least(f"times {whom}, least", min(speeds), _LEAST_EACH)


def _at_least(name: str, value: float, goal: float) -> Figure:
    return Figure(name=name, value=value, unit="x", goal=goal, more_is_better=True)


def network_table(measured: Sequence[NetworkSeconds]) -> Iterator[str]:
    """A row a network and number of threads; those that were not measured say why below."""
    titles = ["network", "threads", "us", "ORT int8 us", "x", "ORT float us", "x", "by kernels"]
    titles += ["tuned s", "unlike ORT", "again us"]
    rows = []
    for each in (each for each in measured if each.seconds):
        unlike = "" if each.unlike is None else f"{each.unlike} of {each.elements}"
        rows.append(
            [
                each.name,
                str(each.threads),
                *_cells(each.seconds, each.int8_seconds, each.times_int8),
                *_cells(None, each.float_seconds, each.times_floats)[1:],
                f"{each.by_kernels:.2f}" if each.by_kernels else "",
                f"{each.tuned_seconds:.0f}",
                unlike,
                _micro(each.again_seconds),
            ]
        )
    yield from text_table(titles, rows)
    for each in measured:
        if each.why:
            yield f"{each.name}, {each.threads}: not measured: {each.why}"


def _cells(ours: float | None, theirs: float | None, times: float | None) -> list[str]:
    return [_micro(ours), _micro(theirs), f"{times:.2f}" if times else ""]


def _micro(seconds: float | None) -> str:
    return f"{1e6 * seconds:.1f}" if seconds else ""


def _mean(values: Sequence[float]) -> float:
    """Geometric."""
    return exp(fsum(map(log, values)) / len(values))


def _ratio(theirs: float | None, ours: float | None) -> float | None:
    return theirs / ours if theirs and ours else None
