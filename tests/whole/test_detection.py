"""A detector from its file to a checked program, judged by its boxes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.onnx_models import saved
from numpy.typing import NDArray

from driver import cli

from .detector import detector, pictures

pytestmark = pytest.mark.whole

Tune = Callable[..., dict[str, Any]]


@pytest.fixture
def tune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tune:
    """Tunes the detector; the summary."""

    def run(labels: NDArray[np.int64] | None, *words: str, code: int = 0) -> dict[str, Any]:
        np.savez(tmp_path / "calibrate.npz", x=pictures(24, seed=1)[0])
        given: dict[str, Any] = {} if labels is None else {"y": labels}
        np.savez(tmp_path / "evaluate.npz", x=pictures(40, seed=2)[0], **given)
        command = ["tune", str(saved(detector(), tmp_path)), "--trials", "1", "--no-ray", "--json"]
        command += ["--workers", "1", "--devices", "1"]
        command += ["--calibrate", str(tmp_path / "calibrate.npz")]
        command += ["--evaluate", str(tmp_path / "evaluate.npz"), "--out", str(tmp_path / "out")]
        assert cli.main([*command, *words]) == code
        said = capsys.readouterr()
        if code:
            return {"error": said.err}
        *events, document = map(json.loads, said.out.splitlines())
        notices = [event["text"] for event in events if event["event"] == "notice"]
        return {**document, "notices": "\n".join(notices)}

    return run


def measures(summary: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["name"], row["against"]): row for row in summary["accuracy"]["compared"]}


def test_a_detector_is_judged_by_the_boxes_of_labels(tune: Tune) -> None:
    summary = tune(pictures(40, seed=2)[1], "--max-loss", "0.5")
    accuracy = summary["accuracy"]
    assert (accuracy["kind"], accuracy["differing"]) == ("boxes", 0)
    found = measures(summary)
    assert found["boxes F1", "labels"]["floats"] == 100.0
    assert found["boxes F1", "labels"]["device"] == found["boxes F1", "labels"]["reference"]
    assert found["boxes IoU", "float"]["device"] > 80
    assert accuracy["judgement"]["is_kept"]
    assert accuracy["judgement"]["title"] == "boxes F1 of labels"


@pytest.mark.slow
def test_without_labels_by_those_of_the_float_network(tune: Tune) -> None:
    summary = tune(None)
    assert {against for _, against in measures(summary)} == {"float"}
    assert summary["accuracy"]["judgement"]["title"] == "boxes F1 of float"


@pytest.mark.slow
def test_labels_in_other_coordinates_are_told_and_left_aside(tune: Tune) -> None:
    labels = pictures(40, seed=2)[1]
    labels[..., 1:] *= 100
    summary = tune(labels)
    assert measures(summary)["boxes F1", "labels"]["floats"] == 0.0
    assert "none that is in the labels" in summary["notices"]
    assert "left, top, right, bottom in its coordinates" in summary["notices"]
    assert summary["accuracy"]["judgement"]["title"] == "boxes F1 of float"


def test_boxes_of_four_numbers_are_told_to_lack_their_class(tune: Tune) -> None:
    error = tune(pictures(40, seed=2)[1][..., 1:], code=2)["error"]
    assert "labels have shape [40, 2, 4]" in error
    assert "boxes [samples, boxes, 5]" in error
