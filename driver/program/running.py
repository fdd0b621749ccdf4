"""Running a deployed program on a user's data."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefarm.clock import Clock
from tilefarm.errors import DataError
from tilefarm.names import RandomIds

from driver.atomic_write import write_atomically
from driver.campaign.job_runner import JobRunner
from driver.farm.lease_source import LeaseSource
from driver.farm.settings import FarmSettings
from driver.network import Graph, GraphInput, load_data
from driver.program.evaluate import ProgramRun, run_program
from driver.program.model import NetworkProgram
from driver.program.profile import profiled
from driver.report.profile import Profile


def answers(
    program: NetworkProgram,
    inputs: Mapping[str, NDArray[Any]],
    devices: LeaseSource,
    settings: FarmSettings,
    clock: Clock,
) -> ProgramRun:
    """The program's outputs for all samples of `inputs`, as `load_inputs` gives them.

    Raises:
        FarmFault, NoDeviceError: see `driver.program.evaluate.run_program`.
    """
    answer = run_program(
        program,
        inputs,
        _runner(devices, settings, clock),
        limit_seconds=settings.run_timeout_seconds,
        run_id=RandomIds().fresh("run"),
    )
    return replace(answer, outputs=in_types_of_model(program, answer.outputs))


def profile(
    program: NetworkProgram,
    inputs: Mapping[str, NDArray[Any]],
    devices: LeaseSource,
    settings: FarmSettings,
    clock: Clock,
    *,
    by_clock: bool,
) -> Profile:
    """What its layers take on one of the devices; see `driver.program.profile.profiled`."""
    return profiled(
        program,
        inputs,
        _runner(devices, settings, clock),
        by_clock=by_clock,
        limit_seconds=settings.run_timeout_seconds,
        run_id=RandomIds().fresh("run"),
    )


def _runner(devices: LeaseSource, settings: FarmSettings, clock: Clock) -> JobRunner:
    return JobRunner(
        devices,
        devices=settings.devices,
        wait_seconds=settings.device_wait_seconds,
        clock=clock,
    )


def in_types_of_model(
    program: NetworkProgram, outputs: Mapping[str, NDArray[Any]]
) -> Mapping[str, NDArray[Any]]:
    """The outputs as the model itself gives them: integers where it ends in some."""
    grids = {o.name: o.grid for o in program.outputs}
    return {
        name: values if (grid := grids[name]) is None else grid.integers(values)
        for name, values in outputs.items()
    }


def write_answers(path: Path, outputs: Mapping[str, NDArray[Any]]) -> None:
    """Write an npz file, whole or not at all.

    It takes names that numpy.savez does not, which has parameters of its own: `file`.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, values in outputs.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    write_atomically(path, content.getvalue())


def _wanted(program: NetworkProgram) -> str:
    given = _inputs_of(program).inputs
    rows = (
        f"{i.name!r} {i.grid.dtype if i.grid else 'float32'}"
        f" [samples, {', '.join(map(str, i.given_shape[1:]))}]"
        for i in given
    )
    return f"{program.name} takes {', '.join(rows)}"


def load_inputs(program: NetworkProgram, data: Path) -> Mapping[str, NDArray[Any]]:
    """The arrays of an npz file in the layout of the program's inputs.

    Raises:
        DataError: they do not fit; the hint lists what the program takes.
    """
    try:
        return load_data(data, _inputs_of(program)).inputs
    except DataError as error:
        raise DataError(error.what, f"{error.hint}; {_wanted(program)}") from None


def _inputs_of(program: NetworkProgram) -> Graph:
    """A graph of nothing but the program's inputs: what the data are checked against."""
    inputs = tuple(
        GraphInput(name=p.name, shape=p.shape, axes=p.axes, grid=p.grid) for p in program.inputs
    )
    shapes = {i.name: i.shape for i in inputs}
    return Graph(name=program.name, inputs=inputs, outputs=(), nodes=(), shapes=shapes)
