"""A program's time in turns with ONNX Runtime's for the same model, on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from tilefarm.errors import InfraError, SettingsError
from tilefarm.measurement import DeviceClock, Precision
from tilefarm.target import Target

from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import Order
from driver.program.evaluate import good_answer
from driver.program.model import NetworkProgram
from driver.program.onnx_runtime import (
    LibraryNetwork,
    peer_layers,
    peer_version,
    quantized_by_peer,
)
from driver.program.parts import whole_batches
from driver.report.comparison import Comparison, LibraryTime
from driver.tune.files import Files

ONNX_RUNTIME: Final = "onnxruntime"
_ROUNDS: Final = 5
_TURN: Final = Precision(error=0.005, seconds=0.2)
_PROFILED_RUNS: Final = 20


def check_comparable(target: Target, tracker: str | None) -> None:
    """That a target's times can stand beside a library's on this machine.

    Raises:
        SettingsError: they are another machine's.
    """
    if target.has_accelerator:
        raise SettingsError(
            f"--compare {ONNX_RUNTIME}: {target.name} is no processor", "--target cpu"
        )
    if tracker is not None:
        raise SettingsError(
            f"--compare {ONNX_RUNTIME}: it runs here, and devices of a farm elsewhere",
            "leave --tracker out, where the device is this machine",
        )


def compared(
    program: NetworkProgram,
    model: Path,
    files: Files,
    runner: JobRunner,
    *,
    limit_seconds: float,
    run_id: str,
    folder: Path,
) -> Comparison:
    """Five rounds of our program and the library's int8 and float32; the least of each counts.

    A model that is quantized already is run as it is.

    Args:
        folder: for the library's own quantization.

    Raises:
        InfraError: the library does not take the model.
        FarmFault, NoDeviceError: see `driver.program.evaluate.run_program`.
    """
    graph, threads = files.graph, program.target.model.threads
    inputs = {i.name: np.asarray(files.evaluation.inputs[i.name], np.float32) for i in graph.inputs}
    paths = {"int8": model}
    if not graph.ranges and files.calibration is not None:
        paths = {"int8": folder / "library_int8.onnx", "float32": model}
        quantized_by_peer(model, graph, files.calibration.inputs, paths["int8"], is_symmetric=False)
    networks = {
        kind: LibraryNetwork(path, graph, inputs, threads=threads) for kind, path in paths.items()
    }
    least = dict.fromkeys(["ours", *networks], float("inf"))
    batch = next(whole_batches(inputs, program.batch, program.batch))
    job = program.run_job(batch, timeout_seconds=limit_seconds, precision=_TURN)
    for turn in range(_ROUNDS):
        order = Order(
            number=turn,
            job=job,
            blobs=program.blobs(batch),
            request_id=f"{run_id}-compared-{turn}",
            clock=DeviceClock.SECONDS,
        )
        (done,) = runner.run([order])
        found = good_answer(done).wall_time
        if found is None:
            raise InfraError(f"device {done.device} times nothing")
        least["ours"] = min(least["ours"], found.minimum_seconds)
        for kind, network in networks.items():
            least[kind] = min(least[kind], _least_seconds(network.call, _TURN.seconds))
    first = next(iter(paths.values()))
    return Comparison(
        library=f"ONNX Runtime {peer_version()}",
        seconds=least["ours"],
        times=tuple(LibraryTime(kind, least[kind]) for kind in networks),
        layers=tuple(peer_layers(first, graph, inputs, threads=threads, runs=_PROFILED_RUNS)),
    )


def _least_seconds(call: Callable[[], None], seconds: float) -> float:
    """The least time of a call within some seconds."""
    least, end = float("inf"), time.monotonic() + seconds
    while time.monotonic() < end:
        before = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - before)
    return least
