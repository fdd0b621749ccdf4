"""Names of files that are no text in any encoding: a run takes them, its records are text."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tilefarm.errors import SettingsError
from tilefarm.readable import readable

from driver.cli import main
from driver.farm.settings import FarmSettings
from driver.jobs.spec import JobSpec
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL, DEMO_TEST
from driver.tune.settings import TuneSettings

ODD = os.fsdecode(b"n\xff\xc3")


def test_what_is_no_text_is_shown_as_bytes() -> None:
    assert readable(ODD) == r"n\xff\xc3"
    assert readable(Path("Größe") / "π.onnx") == "Größe/π.onnx"


@pytest.mark.whole
@pytest.mark.slow  # each place that such a name passes is tried below
def test_a_run_of_such_files_ends_well(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model, calibrate, evaluate = (tmp_path / f"{ODD}{end}" for end in (".onnx", "c.npz", "e.npz"))
    for theirs, ours in ((DEMO_MODEL, model), (DEMO_CALIBRATION, calibrate), (DEMO_TEST, evaluate)):
        shutil.copy(theirs, ours)
    out = tmp_path / f"{ODD}-out"
    words = ["tune", str(model), "--calibrate", str(calibrate), "--evaluate", str(evaluate)]
    words += ["--no-ray", "--workers", "1", "--devices", "1", "--trials", "8", "--json"]
    assert main([*words, "--out", str(out)]) == 0, capfd.readouterr().err
    told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    documents = [json.loads(file.read_bytes()) for file in out.rglob("*.json")]
    assert len(documents) > 4
    json.dumps([told, documents], ensure_ascii=False).encode()  # no lone surrogates
    assert readable(model.name) in (out / "report.html").read_text()


def test_a_job_has_no_other_names() -> None:
    model = Path(DEMO_MODEL)
    settings = TuneSettings(model=model, calibrate=Path(DEMO_CALIBRATION), out=Path(ODD))
    spec, _ = JobSpec.of(settings, ODD)
    spec.to_json().encode()
    assert JobSpec.from_json(spec.to_json()).title == r"n\xff\xc3"


def test_a_job_that_names_such_a_file_of_the_head_is_refused() -> None:
    farm = FarmSettings(tracker="127.0.0.1:9190", token_file=Path(f"/etc/{ODD}"))
    settings = TuneSettings(
        model=Path(DEMO_MODEL), calibrate=Path(DEMO_CALIBRATION), out=Path("out"), farm=farm
    )
    with pytest.raises(SettingsError, match=r"--token-file /etc/n.xff.xc3.*cannot be sent") as told:
        JobSpec.of(settings, "digits")
    assert told.value.hint
