"""What a run takes its model for: all files that the model is made of."""

from __future__ import annotations

from pathlib import Path

import onnx
from kit.onnx_models import saved_beside
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.watch.operations import Operations

from driver.demo import CALIBRATION, MODEL
from driver.settings import TuneSettings
from driver.steps.preparing import read
from driver.steps.stages import Stages
from driver.steps.watched import watched
from driver.stop import StopSwitch


def digest_of(model: Path, scratch: Path) -> Digest:
    """By which the folder of a run knows the model again."""
    clock, told = SystemClock(), list[object]()
    with watched(Operations(), told.append, run_id="test", clock=clock, wall_origin=0.0) as watch:
        stages = Stages(
            settings=TuneSettings(model=model, calibrate=CALIBRATION, out=scratch),
            clock=clock,
            watch=watch,
            stop=StopSwitch(),
            scratch=scratch,
            run_id="test",
            wall_origin=0.0,
        )
        return read(stages).model_digest


def test_a_model_with_other_weights_beside_it_is_another_model(tmp_path: Path) -> None:
    model = saved_beside(onnx.load(MODEL), tmp_path)
    before = digest_of(model, tmp_path)
    assert digest_of(model, tmp_path) == before
    weights = tmp_path / "w/net.bin"
    weights.write_bytes(bytes(4) + weights.read_bytes()[4:])
    assert digest_of(model, tmp_path) != before
    assert digest_of(MODEL, tmp_path) == Digest.of_file(MODEL)
