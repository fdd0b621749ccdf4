"""Running a deployed program on a user's data."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefarm.clock import Clock
from tilefarm.names import RandomIds

from driver.farm.device_thread import LeaseSource
from driver.farm.errands import Errands
from driver.frontend import load_data
from driver.graph.ir import Graph, GraphInput
from driver.program.evaluate import ProgramRun, run_program
from driver.program.model import NetworkProgram
from driver.settings import FarmSettings
from driver.steps.output import write_whole


def answers(
    program: NetworkProgram,
    data: Path,
    devices: LeaseSource,
    settings: FarmSettings,
    clock: Clock,
) -> ProgramRun:
    """The program's outputs for all samples of an npz file.

    Raises:
        DataError: the arrays do not fit the program's inputs.
        FarmFault, NoDeviceError: see `driver.program.evaluate.run_program`.
    """
    errands = Errands(
        devices,
        devices=settings.devices,
        wait_seconds=settings.device_wait_seconds,
        clock=clock,
    )
    return run_program(
        program,
        load_data(data, _inputs_of(program)).inputs,
        errands,
        seconds_per_sample=settings.run_timeout_seconds,
        run_id=RandomIds().fresh("run"),
    )


def write_answers(path: Path, outputs: Mapping[str, NDArray[Any]]) -> None:
    """Write an npz file, whole or not at all."""
    content = io.BytesIO()
    arrays: dict[str, Any] = dict(outputs)
    np.savez(content, **arrays)
    write_whole(path, content.getvalue())


def _inputs_of(program: NetworkProgram) -> Graph:
    """A graph of nothing but the program's inputs: what the data are checked against."""
    inputs = tuple(GraphInput(name=p.name, shape=p.shape, axes=p.axes) for p in program.inputs)
    shapes = {i.name: i.shape for i in inputs}
    return Graph(name=program.name, inputs=inputs, outputs=(), nodes=(), shapes=shapes)
