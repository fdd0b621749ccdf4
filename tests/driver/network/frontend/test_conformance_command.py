"""`tilefarm conformance`: verdicts on cases of a folder, and the file of reasons."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node
from numpy.typing import NDArray
from onnx import numpy_helper

from driver import cli
from driver.network.frontend.conformance.cases import conformance_cases
from driver.network.frontend.conformance.conformance import conformance_results, reasons

X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(1, 3, 4, 4)


def save(folder: Path, name: str, operator: str, answer: NDArray[np.float32]) -> None:
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True)
    made = model([node(operator, ["x"], "y")])
    (folder / name / "model.onnx").write_bytes(made.SerializeToString())
    for file, values in (("input_0.pb", X), ("output_0.pb", answer)):
        content = numpy_helper.from_array(values).SerializeToString()
        (data / file).write_bytes(content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path, "good", "Relu", np.maximum(X, 0))
    save(tmp_path, "refused", "Det", X)
    return tmp_path


def test_cases_of_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reasons_file = folder / "reasons.json"
    words = ["conformance", "--cases", str(folder)]
    assert cli.main([*words, "--json", "--reasons", str(reasons_file)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sums"] == {"float": {"passed": 1, "skipped": 1, "failed": 0}}
    (why,) = json.loads(reasons_file.read_text())["Det"]
    assert why == "Det: operator is not supported"
    assert cli.main(words) == 0
    assert "float      1 passed, 1 skipped, 0 failed" in capsys.readouterr().out


def test_a_wrong_answer_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(folder, "wrong", "Relu", np.maximum(X, 0.5))
    assert cli.main(["conformance", "--cases", str(folder)]) == 1
    out = capsys.readouterr().out
    assert f"FAILED {folder.name}/wrong: y is off by 0.5" in out


def test_an_answer_of_another_shape_fails(folder: Path) -> None:
    save(folder, "wrong", "Relu", np.maximum(X, 0)[:, :1])
    (wrong,) = (
        each for each in conformance_results(conformance_cases(folder)) if each.verdict == "failed"
    )
    assert wrong.why == "y has shape [1, 3, 4, 4], not [1, 1, 4, 4]"


def test_folders_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["conformance", "--cases", str(tmp_path)]) == 2
    assert "no cases in it" in capsys.readouterr().err
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/model.onnx").write_bytes(b"\xff\x00junk")
    assert cli.main(["conformance", "--cases", str(tmp_path)]) == 2
    assert "bad: cannot be read" in capsys.readouterr().err


def test_the_reasons_are_whole() -> None:
    known = reasons()
    assert len(known) > 100
    assert all(known.values())


@pytest.mark.slow
def test_no_case_fails_and_the_reasons_are_true() -> None:
    """After an operator was added: `tilefarm conformance --reasons` writes the file anew."""
    if onnx.__version__ != "1.23.2":
        pytest.skip(f"the reasons are for the cases of onnx 1.23.2, not {onnx.__version__}")
    found = list(conformance_results(conformance_cases()))
    assert not [each for each in found if each.verdict == "failed"]
    skipped = {each.name: each.why for each in found if each.verdict == "skipped"}
    assert skipped == reasons()
    assert sum(each.verdict == "passed" for each in found) >= 215
