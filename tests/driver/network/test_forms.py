"""Networks as commands name them: which need data, and what stands in where there are none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from kit.networks.onnx_models import model, node, saved
from kit.networks.qdq import layer_weights, two_convolutions
from tilefarm.errors import DataError, ModelError, SettingsError
from tilefarm.target import TARGETS

from driver import cli
from driver.network import import_model
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.network.forms import NetworkSource, forms_of
from driver.network.frontend.seeded import seeded_data
from driver.network.quantize.options import Quantization

TARGET = TARGETS["sim"]


def quantized_model(folder: Path) -> Path:
    return saved(two_convolutions(layer_weights()), folder)


def test_a_model_that_gives_its_ranges_needs_no_data(tmp_path: Path) -> None:
    forms = forms_of(NetworkSource(model=quantized_model(tmp_path)), TARGET)
    assert forms.is_seeded
    assert forms.data.samples == 4
    assert np.abs(forms.data.inputs["x"]).max() > 0.9 * forms.graph.ranges["x"]


def test_data_that_are_given_are_taken(tmp_path: Path) -> None:
    data = tmp_path / "x.npz"
    np.savez(data, x=np.ones((3, 3, 8, 8), np.float32))
    forms = forms_of(NetworkSource(model=quantized_model(tmp_path), calibration=data), TARGET)
    assert not forms.is_seeded
    assert forms.samples(None, 2).samples == 2


def test_what_is_missing_is_said_first_things_first(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot read .*absent\.onnx"):
        forms_of(NetworkSource(model=tmp_path / "absent.onnx"), TARGET)
    with pytest.raises(DataError, match=r"digits needs --calibrate DATA\.npz"):
        forms_of(NetworkSource(model=DEMO_MODEL), TARGET)
    with pytest.raises(SettingsError, match="zoo:vgg: no such network"):
        forms_of(NetworkSource(model="zoo:vgg"), TARGET)


def calibrated(method: str) -> Quantization:
    return Quantization(calibration=method)


def test_how_it_becomes_integers_is_the_users(tmp_path: Path) -> None:
    scales = [
        forms_of(
            NetworkSource(model=DEMO_MODEL, calibration=DEMO_CALIBRATION, how=how), TARGET
        ).quantized.tensors
        for how in map(calibrated, ("minmax", "percentile:90"))
    ]
    assert scales[0]["relu1"].scale != scales[1]["relu1"].scale


def test_options_that_look_at_data_need_some(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--correct-bias need --calibrate"):
        forms_of(
            NetworkSource(model=quantized_model(tmp_path), how=Quantization(correct_bias=True)),
            TARGET,
        )


def test_seeded_inputs(tmp_path: Path) -> None:
    plain = saved(model([node("Relu", ["x"], "y")], {}, x=(2, 5)), tmp_path)
    graph = import_model(plain)
    (values,) = seeded_data(graph, 400, 1).inputs.values()
    assert values.shape == (400, 5)
    assert values.dtype == np.float32
    assert 0.8 < values.std() < 1.2
    assert np.array_equal(values, seeded_data(graph, 400, 1).inputs["x"])
    assert not np.array_equal(values, seeded_data(graph, 400, 2).inputs["x"])


@pytest.mark.parametrize("command", ["explain", "check", "show"])
def test_commands_take_it_without_data(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command, str(quantized_model(tmp_path)), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)
    if command != "show":
        assert "the samples are random" in captured.err
