"""Names of networks that come with tilefarm, where a path could stand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driver import cli
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.network.examples.zoo import ModelFiles, model_files, short_name


def test_files_of_the_user_are_taken_as_they_are(tmp_path: Path) -> None:
    mine = ModelFiles(Path("a.onnx"), Path("b.npz"))
    assert model_files("a.onnx", Path("b.npz"), tmp_path / "zoo") == mine
    assert not (tmp_path / "zoo").exists()
    assert model_files("a.onnx", None, tmp_path) == ModelFiles(Path("a.onnx"), None)


def test_built_in_networks_bring_their_data(tmp_path: Path) -> None:
    assert model_files("zoo:digits", None, tmp_path) == ModelFiles(DEMO_MODEL, DEMO_CALIBRATION)
    files = model_files(Path("zoo:squeezenet"), None, tmp_path / "zoo")
    assert files.model.read_bytes()
    assert files.calibration is not None
    assert np.load(files.calibration)["x"].shape == (4, 3, 224, 224)
    other = model_files("zoo:digits", Path("c.npz"), tmp_path)
    assert other == ModelFiles(DEMO_MODEL, Path("c.npz"))


def test_unknown_names_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert cli.main(["tune", "zoo:resnet19", "--out", out]) == 2
    error = capsys.readouterr().err
    assert "zoo:resnet19: no such network" in error
    assert "zoo:digits, zoo:resnet18, zoo:mobilenet_v1, zoo:mobilenet_v2, zoo:squeezenet" in error


def test_names_for_folders() -> None:
    assert short_name("zoo:resnet18") == "resnet18"
    assert short_name(Path("nets/mine.v2.onnx")) == "mine.v2"
