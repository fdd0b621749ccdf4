"""What a run takes its model for: all files that the model is made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import saved_beside
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.target import TARGETS
from tilefarm.watch.operations import Operations

from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.run_events import StepEnded
from driver.stop_token import StopToken
from driver.tune import run_context
from driver.tune.files import Files
from driver.tune.preparing import read
from driver.tune.run_context import RunContext
from driver.tune.settings import TuneSettings
from driver.tune.watched import watched


def files_of(
    model: Path, scratch: Path, *, calibrate: Path = DEMO_CALIBRATION
) -> tuple[Files, list[object]]:
    """What is read of a model and its data, and what the user is told meanwhile."""
    clock, told = SystemClock(), list[object]()
    with watched(Operations(), told.append, run_id="test", clock=clock, wall_origin=0.0) as watch:
        context = RunContext(
            settings=TuneSettings(model=model, calibrate=calibrate, out=scratch),
            clock=clock,
            watch=watch,
            stop=StopToken(),
            scratch=scratch,
            run_id="test",
            wall_origin=0.0,
        )
        return read(context, TARGETS["sim"]), told


def digest_of(model: Path, scratch: Path) -> Digest:
    """By which the folder of a run knows the model again."""
    return files_of(model, scratch)[0].model_digest


def test_a_model_with_other_weights_beside_it_is_another_model(tmp_path: Path) -> None:
    model = saved_beside(onnx.load(DEMO_MODEL), tmp_path)
    before = digest_of(model, tmp_path)
    assert digest_of(model, tmp_path) == before
    weights = tmp_path / "w/net.bin"
    weights.write_bytes(bytes(4) + weights.read_bytes()[4:])
    assert digest_of(model, tmp_path) != before
    assert digest_of(DEMO_MODEL, tmp_path) == Digest.of_file(DEMO_MODEL)


def test_each_step_gives_back_what_it_has_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back = list[bool]()
    monkeypatch.setattr(run_context, "return_freed_memory", lambda: given_back.append(True))
    told = files_of(DEMO_MODEL, tmp_path)[1]
    assert len(given_back) == sum(isinstance(event, StepEnded) for event in told) > 0


def test_labels_by_another_name_are_told(tmp_path: Path) -> None:
    images = np.load(DEMO_CALIBRATION)["x"]
    path = tmp_path / "data.npz"
    np.savez(path, x=images, labels=np.zeros(len(images), np.int64))
    _, told = files_of(DEMO_MODEL, tmp_path, calibrate=path)
    assert sum(f"{path}: nothing uses 1 array 'labels'" in str(each) for each in told) == 1
    _, told = files_of(DEMO_MODEL, tmp_path)
    assert not any("nothing uses" in str(each) for each in told)
