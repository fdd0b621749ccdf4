"""Jobs as texts: the settings that arrive are those that were sent, for the same code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tilefarm.digest import Digest
from tilefarm.errors import CorruptBlobError, DataError, ModelError, ProtocolError, SettingsError
from tilefarm.sandbox import SandboxLevel

from driver.farm.settings import FarmSettings
from driver.jobs.spec import JobSpec
from driver.network.quantize.options import Quantization
from driver.tune.settings import TuneSettings


def settings(folder: Path) -> TuneSettings:
    for name in ("net.onnx", "x.npz", "target.json", "mine.py"):
        (folder / name).write_text(f"content of {name}")
    return TuneSettings(
        model=folder / "net.onnx",
        calibrate=folder / "x.npz",
        out=Path("anywhere"),
        extents={"batch": (1,), "input": (1, 3, 8, 8)},
        quantization=Quantization(equalize=True, keep_float=("first", "last*"), wide=("middle",)),
        trials=77,
        seed=5,
        lookahead=400,
        judge="boxes",
        max_loss=0.5,
        plugins=(folder / "mine.py",),
        farm=FarmSettings(
            target=str(folder / "target.json"),
            tracker="farm:9190",
            token_file=Path("/etc/token"),
            labels=(("board", "de10"),),
            require_sandbox=SandboxLevel.LANDLOCK,
            priority=3,
        ),
    )


def arrived(spec: JobSpec, files: dict[Digest, Path], folder: Path) -> TuneSettings:
    folder.mkdir()
    for digest, path in files.items():
        (folder / digest.hex).write_bytes(path.read_bytes())
    return spec.tune_settings(folder, folder / "inputs", folder / "out")


def test_settings_arrive_as_they_were_sent(tmp_path: Path) -> None:
    sent = settings(tmp_path)
    spec, files = JobSpec.of(sent, "net")
    again = JobSpec.from_json(spec.to_json())
    assert again.to_json() == spec.to_json()
    assert again.run == spec.run
    got = arrived(again, files, tmp_path / "there")
    assert got.model.name == "net.onnx"
    assert got.model.read_text() == "content of net.onnx"
    assert [(each.name, each.read_text()) for each in got.plugins] == [
        ("mine.py", "content of mine.py")
    ]
    assert Path(got.farm.target).read_text() == "content of target.json"
    placed = replace(
        got,
        model=sent.model,
        calibrate=sent.calibrate,
        plugins=sent.plugins,
        out=sent.out,
        farm=replace(got.farm, target=sent.farm.target),
    )
    assert placed == sent


def test_what_does_not_change_results_continues_a_run(tmp_path: Path) -> None:
    sent = settings(tmp_path)
    run = JobSpec.of(sent, "net")[0].run
    longer = replace(sent, trials=9999, farm=replace(sent.farm, devices=9, workers=4, priority=0))
    assert JobSpec.of(longer, "other name")[0].run == run
    others = [
        replace(sent, seed=6),
        replace(sent, plugins=()),
        replace(sent, plugins=(tmp_path / "mine.py", tmp_path / "x.npz")),
        replace(sent, max_loss=None),
        replace(sent, calibrate=None, quantization=Quantization()),
        replace(sent, quantization=Quantization()),
        replace(sent, quantization=replace(sent.quantization, wide=())),
        replace(sent, extents={"batch": (2,)}),
        replace(sent, farm=replace(sent.farm, target="sim")),
        replace(sent, farm=replace(sent.farm, target="sim-mul")),
    ]
    runs = {JobSpec.of(other, "net")[0].run for other in others}
    assert len(runs) == len(others)
    assert run not in runs


def test_another_version_of_the_code_is_refused(tmp_path: Path) -> None:
    spec, _ = JobSpec.of(settings(tmp_path), "net")
    spec.require_same_code()
    other = replace(spec, version="9.9", code=Digest.of(b"other sources"))
    with pytest.raises(
        SettingsError, match=r"the job is from 9\.9 \(code .*\)\n  try: install one"
    ):
        other.require_same_code()


def test_files_that_are_not_what_was_sent_are_refused(tmp_path: Path) -> None:
    spec, files = JobSpec.of(settings(tmp_path), "net")
    (tmp_path / "x.npz").write_text("other data")
    with pytest.raises(CorruptBlobError, match=r"x\.npz did not arrive as"):
        arrived(spec, files, tmp_path / "there")
    with pytest.raises(CorruptBlobError, match=r"did not arrive as"):
        spec.tune_settings(tmp_path / "nowhere", tmp_path / "in", tmp_path / "out")
    (tmp_path / "x.npz").unlink()
    with pytest.raises(DataError, match=r"x\.npz: cannot be read"):
        JobSpec.of(TuneSettings(model=tmp_path / "x.npz", out=tmp_path), "net")


def with_weights(folder: Path, content: str = "weights") -> tuple[JobSpec, dict[Digest, Path]]:
    """A job whose model has a file beside it."""
    (folder / "w.bin").write_text(content)
    return JobSpec.of(settings(folder), "net", {"./data/w.bin": folder / "w.bin"})


def test_files_beside_the_model_arrive_under_its_names_for_them(tmp_path: Path) -> None:
    spec, files = with_weights(tmp_path)
    again = JobSpec.from_json(spec.to_json())
    assert (again.beside, again.run) == (spec.beside, spec.run)
    got = arrived(again, files, tmp_path / "there")
    assert (got.model.parent / "data/w.bin").read_text() == "weights"
    assert got.model.read_text() == "content of net.onnx"


def test_other_weights_are_another_run(tmp_path: Path) -> None:
    runs = {with_weights(tmp_path)[0].run, with_weights(tmp_path, "other weights")[0].run}
    runs.add(JobSpec.of(settings(tmp_path), "net")[0].run)
    assert len(runs) == 3


def test_weights_that_are_not_what_was_sent_are_refused(tmp_path: Path) -> None:
    spec, files = with_weights(tmp_path)
    (tmp_path / "w.bin").write_text("other weights")
    with pytest.raises(CorruptBlobError, match=r"data/w\.bin did not arrive as"):
        arrived(spec, files, tmp_path / "there")


@pytest.mark.parametrize("name", ["../w.bin", "a/../w.bin", "/etc/w.bin", ""])
def test_names_that_leave_the_folder_of_the_model_are_refused(name: str, tmp_path: Path) -> None:
    sent = settings(tmp_path)
    with pytest.raises(
        ModelError, match=r"not a plain path below the model's folder.*\n  try: save"
    ):
        JobSpec.of(sent, "net", {name: sent.model})
    evil = with_weights(tmp_path)[0].to_json().replace("./data/w.bin", name)
    with pytest.raises(ProtocolError, match=r"not a job: .* is not below the model's folder"):
        JobSpec.from_json(evil)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"title": 1}', '{"title": "a", "settings": {}, "files": 3}']
)
def test_other_texts_are_no_jobs(text: str) -> None:
    with pytest.raises(ProtocolError, match=r"not a job: .*\n  try: `tilefarm submit`"):
        JobSpec.from_json(text)


def test_a_path_in_a_file_name_is_dropped(tmp_path: Path) -> None:
    spec, _ = JobSpec.of(settings(tmp_path), "net")
    evil = spec.to_json().replace("net.onnx", "../../../evil.onnx")
    assert JobSpec.from_json(evil).files["model"].name == "evil.onnx"


def test_settings_of_another_shape_are_refused(tmp_path: Path) -> None:
    spec, files = JobSpec.of(settings(tmp_path), "net")
    other = {"keep_float": [], "wide": [], "wide_activations": [], "x": 1}
    strange = replace(spec, settings={**spec.settings, "quantization": other})
    with pytest.raises(ProtocolError, match="not the settings of a job"):
        arrived(strange, files, tmp_path / "there")
